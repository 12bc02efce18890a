"""A digest by the clock: three runs, a second apart, that count on from each other. Kill it anywhere and run it again.

python examples/agents/digest.py
"""

import asyncio

from perdure import Perdure, durable, step
from perdure.automation import scheduled

app = Perdure()


@step
async def read_mails(day: int) -> int:
    await asyncio.sleep(0.05)
    print("reading the mails of day", day, flush=True)
    return day


@durable
async def digest() -> dict[str, int]:
    tick = await scheduled()
    days = (tick.state or {"days": 0})["days"] if tick else 0
    return {"days": await read_mails(days + 1)}


async def main() -> None:
    async with app, app.worker():
        schedule = await app.schedule("digest", digest).every("1s")
        while True:
            found = await app.schedules.get(schedule.id)
            days = (found.state or {"days": 0})["days"] if found else 0
            if days >= 3:
                break
            await asyncio.sleep(0.1)
        print("done: three digests", flush=True)


asyncio.run(main())
