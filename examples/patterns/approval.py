"""Ask a person before something that cannot be taken back. No process is held while nobody answers.

python examples/patterns/approval.py ask            # asks, and ends
python examples/patterns/approval.py approve ada    # from another terminal, tomorrow
python examples/patterns/approval.py ask            # goes on
"""

import asyncio
import sys

from perdure import Perdure, durable, effect, idempotency_key, pause

ID = "publish-newsletter-42"


@effect(keyed=True)
async def publish(text: str) -> str:
    print("published with key", idempotency_key()[:4] + "…", flush=True)
    return f"{len(text)} characters"


@durable
async def newsletter(text: str) -> str:
    approval = await pause.approval(f"Publish {text!r}?", expires="2d")
    return f"{await publish(text)}, approved by {approval.by}"


async def ask(app: Perdure) -> None:
    await app.start(ID, newsletter, "Hello.")
    async with app.worker():
        while True:
            record = await app.tasks.get(ID)
            assert record is not None
            if record.status in ("paused", "completed"):
                break
            await asyncio.sleep(0.02)
    print("waiting for approval" if record.is_paused else f"result: {record.result}")


async def main() -> None:
    async with Perdure() as app:
        if sys.argv[1] == "ask":
            await ask(app)
        else:
            task = await app.tasks.open(ID)
            await task.approve(by=sys.argv[2])
            print("approved")


if sys.argv[1:2] != ["ask"] and len(sys.argv) < 3:
    sys.exit(__doc__)
asyncio.run(main())
