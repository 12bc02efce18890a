"""Tasks that carry on by themselves: start some, kill the worker, start another.

python examples/worker.py start            three orders, for whoever works on them
perdure worker examples/worker.py:app      a worker; kill it with -9 and start it again
perdure where order-1                      what it was in the middle of
perdure drain                              the worker leaves, its tasks go on elsewhere
"""

import asyncio
import sys

from perdure import Perdure, durable, effect, step

app = Perdure()
# At most two orders at a time over all workers, and at most five begin in any second.
app.queue("orders", concurrency=2, rate=(5, "1s"))


@step
async def pack(order: str, item: int) -> str:
    await asyncio.sleep(0.2)
    print(f"{order}: packed {item}", flush=True)
    return f"parcel {item}"


@effect
async def ship(order: str, parcels: list[str]) -> str:
    print(f"{order}: shipped {len(parcels)} parcels", flush=True)
    return f"tracking-{order}"


@durable
async def fulfil(order: str, items: int) -> str:
    parcels = [await pack(order, item) for item in range(1, items + 1)]
    return await ship(order, parcels)


async def start() -> None:
    async with app:
        for number in (1, 2, 3):
            # Orders of one customer are fulfilled one after the other.
            order = fulfil.options(queue="orders", key=f"customer-{number % 2}")
            await app.start(f"order-{number}", order, f"order-{number}", 5)
    print("started order-1, order-2, order-3")


if __name__ == "__main__" and sys.argv[1:] == ["start"]:
    asyncio.run(start())
