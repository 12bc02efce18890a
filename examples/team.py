"""Four parts of a report in the order they depend on each other, and somebody who is told.

Run it, kill it half-way with Ctrl-C or `kill -9`, and run it again: what was done is not done again.
"""

import asyncio
import sys

from perdure import Perdure, durable, step
from perdure.automation import Event

app = Perdure()
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 0.5
PARTS = {"outline": (), "numbers": ("outline",), "texts": ("outline",), "report": ("numbers", "texts")}


@step(flush=True)
async def write(name: str) -> str:
    await asyncio.sleep(SECONDS)
    print(f"wrote {name}", flush=True)
    return name


@durable
async def part(name: str) -> str:
    return await write(name)


@app.on("completed")
async def tell(event: Event) -> None:
    print(f"told that {event.task_id} is done", flush=True)


async def main() -> None:
    async with app, app.worker():
        for name, before in PARTS.items():
            await app.start(name, part.options(depends_on=before), name)
        record = await app.tasks.wait_for("report")
        print(f"finished: {record.result}")


asyncio.run(main())
