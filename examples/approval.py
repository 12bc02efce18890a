"""Ask before money is spent, wait without a process, and be decided from a shell.

python approval.py                                  # asks; kill it while it waits, if you like
perdure show order-42                               # what it waits for, since when, until when
perdure approve order-42 --comment "fine"           # or: perdure reject order-42
python approval.py                                  # goes on after the question
"""

import asyncio

from perdure import Perdure, durable, pause, step
from perdure.errors import Rejected


@step
async def prepare(order: str) -> int:
    print(f"preparing {order}")
    return 500


@durable
async def checkout(order: str) -> str:
    cents = await prepare(order)
    try:
        yes = await pause.approval(f"Charge {cents} cents for {order}?", expires="2d")
    except Rejected as no:
        return f"not charged: {no.by or 'nobody'} said no"
    await pause.wait(seconds=1)  # with a worker, no process is held meanwhile
    return f"charged {cents} cents, approved by {yes.by} ({yes.comment})"


async def main() -> None:
    async with Perdure() as app:
        running = asyncio.create_task(app.run("order-42", checkout, "tea"))
        while not running.done():
            record = await app.tasks.get("order-42")
            if record is not None and record.pause is not None and record.pause.reason == "human_approval":
                print("waits for: perdure approve order-42", flush=True)
                break
            await asyncio.sleep(0.05)
        print(await running)


asyncio.run(main())
