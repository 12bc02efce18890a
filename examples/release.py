"""A release that is carried on a little at each call, as a cron job or a web request would do it.

python examples/release.py                                # builds, then returns: it waits for a yes
perdure approve release-1.4
python examples/release.py                                # waits for a signal that has to be a whole number
perdure signal release-1.4 replicas many                  # refused, with what is waited for
perdure signal release-1.4 replicas 3
python examples/release.py                                # ends

Kill it at any place and call it again: what is on disk is not done again.
"""

import asyncio
import sys

from perdure import Perdure, Retry, durable, pause, signals, step

PAUSE = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3


@step(retry=Retry(3, wait="200ms"), timeout="1m", flush=True)  # on disk before the next part begins
async def build(part: str) -> str:
    await asyncio.sleep(PAUSE)
    print("built", part, flush=True)
    return f"{part}.whl"


@durable
async def release(version: str) -> str:
    built = [await build(part) for part in ("core", "cli", "docs")]
    yes = await pause.approval(f"Ship {', '.join(built)}?", expires="2d")
    replicas = await signals.next("replicas", int)
    return f"{version} runs {replicas} times, said {yes.by}"


async def main() -> None:
    async with Perdure() as app:
        stopped = await app.run_until_paused("release-1.4", release, "1.4")
        print("waits for:" if stopped.is_paused else "done:", stopped.waits_for or stopped.result)


asyncio.run(main())
