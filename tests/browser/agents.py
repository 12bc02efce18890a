"""Agents whose tasks the browser tests look at. `perdure up tests.browser.agents:app` runs workers of them."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Literal

from msgspec import Meta, Struct

from perdure import Perdure, Retry, durable, effect, pause, step

app = Perdure(os.environ.get("PERDURE_URL"))


class Order(Struct):
    """What is bought."""

    id: str
    lines: int
    cents: int


class Placement(Struct):
    """Where a cluster goes."""

    replicas: Annotated[int, Meta(ge=1, le=9, description="how many copies serve at a time")]
    zone: Literal["eu-central-1", "eu-west-1", "us-east-1"] = "eu-central-1"
    labels: list[str] = []
    note: str | None = None


class Flaky(Exception):
    """A service that answers 503 at first."""


_tries: dict[str, int] = {}


def _fail_first(name: str, times: int) -> None:
    _tries[name] = _tries.get(name, 0) + 1
    if _tries[name] <= times:
        raise Flaky(f"{name} answered 503")


@step
async def load_order(order: str) -> Order:
    return Order(order, 3, 4200)


@step(retry=Retry(5, wait="10ms"))
async def summarise(order: str, page: int) -> str:
    if page == 3:
        _fail_first(f"summarise {order}", 2)
    return ("3 lines, gift wrap", "address checked", "no notes")[page - 1]


@effect
async def reserve_stock(order: str, lines: int) -> str:
    return f"rsv_{order}"


@step(retry=Retry(5, wait="20ms"))
async def quote_tax(country: str, order: str) -> int:
    _fail_first(f"quote_tax {order}", 2)
    return 672


@effect
async def charge(order: str, cents: int) -> str:
    return f"receipt-{order}"


@durable
async def checkout(order: str) -> str:
    found = await load_order(order)
    await asyncio.gather(*(summarise(order, page) for page in (1, 2, 3)))
    await reserve_stock(order, found.lines)
    await quote_tax("DE", order)
    await pause.approval(f"Charge {found.cents / 100:.2f} EUR to card •••• 4242?", expires="2d")
    return await charge(order, found.cents)


@durable
async def migrate(cluster: str) -> Placement:
    await load_order(cluster)
    return await pause.input("How many replicas for the new cluster?", Placement, expires="6h")


@step
async def fetch(page: int) -> str:
    return f"{page * 2654435761 % 2**32:08x}"


@durable
async def crawl(pages: int) -> int:
    for page in range(pages):
        await fetch(page)
    return pages


@durable
async def sync_issues(repository: str) -> str:
    await load_order(repository)
    await pause.rate_limit(retry_after=1800, provider="github")
    return repository


@step
async def parse_row(row: int) -> int:
    if row == 3:
        raise ValueError(f"bad row {row}: 'abc' is not a number")
    return row


@durable
async def import_legacy(rows: int) -> int:
    return sum([await parse_row(row) for row in range(rows)])


@step
async def echo(text: str) -> str:
    return text


@durable
async def ask_hostile(question: str, texts: list[str]) -> str:
    for text in texts:
        await echo(text[:2000])
    await pause.input(question, str)
    return question


@step
async def stand_still() -> None:
    await asyncio.Event().wait()


@durable
async def crawl_and_wait(pages: int) -> int:
    for page in range(pages):
        await fetch(page)
    await stand_still()
    return pages
