"""A tool fails. See where, mend it, and go on: what was done is not done again.

python examples/failing_tool.py            fetches two pages, fails at the second price, and says where
perdure where price-list                   the same from any terminal: the line, the calls around it, the way on
perdure resume price-list                  a new attempt, with the code as it is then
python examples/failing_tool.py mended     goes on with the mended tool
"""

import asyncio
import sys

from perdure import Perdure, durable, step

PAGES = {"tea": "4.50", "cake": "n/a"}
IS_MENDED = "mended" in sys.argv


@step(flush=True)
async def fetch(page: str) -> str:
    print("fetching", page, flush=True)
    return PAGES[page]


@step
async def price(text: str) -> float:
    return price_of(text)


def price_of(text: str) -> float:
    if IS_MENDED and text == "n/a":
        return 0.0
    return float(text)


@durable
async def price_list() -> dict[str, float]:
    prices = {}
    for page in PAGES:
        prices[page] = await price(await fetch(page))
    return prices


async def main() -> None:
    async with Perdure() as app:
        try:
            print("prices:", await app.run("price-list", price_list))
        except ValueError as error:
            record = await app.tasks.get("price-list")
            assert record is not None
            place, _, traceback = record.error["traceback"].partition("\n")
            print(f"failed: {error}, {place}\n{traceback}")
            print("look: perdure where price-list; then mend it, and: perdure resume price-list")


asyncio.run(main())
