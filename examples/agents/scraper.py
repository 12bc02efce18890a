"""Read twelve pages of a site that allows four at a time. Kill it anywhere and run it again.

python examples/agents/scraper.py
"""

import asyncio

from perdure import Perdure, durable, pause, step

answered = 0  # the site's own count


class TooManyRequests(Exception):
    def __init__(self, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(f"429, try again in {retry_after} s")


@step(raises=[TooManyRequests])
async def fetch(page: int) -> str:
    global answered
    await asyncio.sleep(0.02)
    answered += 1
    if answered % 5 == 0:
        raise TooManyRequests(0.1)
    print("page", page, flush=True)
    return f"page {page}"


@durable
async def scrape(pages: int) -> int:
    found = []
    while len(found) < pages:
        try:
            found.append(await fetch(len(found) + 1))
        except TooManyRequests as error:
            await pause.rate_limit(retry_after=error.retry_after, provider="example.org")  # no process is held
    return len(found)


async def main() -> None:
    async with Perdure() as app:
        print("done:", await app.run("scrape-1", scrape, 12), "pages", flush=True)


asyncio.run(main())
