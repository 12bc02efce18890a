"""Many small items: one step per batch, so that a crash costs at most one batch and the journal stays short.

python examples/patterns/per_batch.py ITEMS
"""

import asyncio
import sys

from perdure import Perdure, durable, step

BATCH = 100


@step(flush=True)  # on disk before the next batch begins
async def add_up(first: int, last: int) -> int:
    print("batch", first, flush=True)
    return sum(range(first, last))


@durable
async def add_all(items: int) -> int:
    total = 0
    for first in range(0, items, BATCH):
        total += await add_up(first, min(first + BATCH, items))
    return total


async def main(items: int) -> None:
    async with Perdure() as app:
        print("total", await app.run(f"add-up-{items}", add_all, items))


if len(sys.argv) < 2:
    sys.exit(__doc__)
asyncio.run(main(int(sys.argv[1])))
