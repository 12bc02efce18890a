"""Agents whose tasks the browser tests look at. `perdure up tests.browser.agents:app` runs workers of them."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from perdure import Perdure, Retry, checkpoint, durable, effect, idempotency_key, pause, signals, step
from perdure.pause import Rejected

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


@durable
async def crawl_in_turns(pages: int, turns: int) -> int:
    """Fetches some pages, and waits to be told before it fetches as many again."""
    for turn in range(turns):
        for page in range(pages):
            await fetch(turn * pages + page)
        await signals.next("more", int)
    return pages * turns


# ── deeds in the world, which a test can count: a line of a file each ───────────────────────────────


def _deed(line: str) -> None:
    with Path(os.environ["PERDURE_TEST_WORLD"]).open("a", encoding="utf-8") as world:
        world.write(line + "\n")


class Spot(Struct):
    """A place in a building."""

    city: str
    floor: int = 0


class Rollout(Struct):
    """How a version goes out."""

    replicas: Annotated[int, Meta(ge=1, le=9)]
    ring: Literal["canary", "half", "all"]
    spot: Spot
    window: datetime | None = None
    hosts: list[str] = []


@durable
async def roll_out(version: str) -> Rollout:
    return await pause.input("How does it go out?", Rollout)


@durable
async def send_letter(to: str) -> Any:
    said = await pause.approval(
        f"Send this letter to {to}?", editable={"subject": "Hello", "lines": 2, "urgent": False}
    )
    return said.edited


@durable
async def wait_for_a_yes(what: str) -> str:
    try:
        await pause.approval(f"Ship {what}?", expires="2h")
    except Rejected as refused:
        return f"not shipped: {refused}"
    return "shipped"


@durable
async def sign(what: str) -> str:
    """Takes no for an answer after ten seconds."""
    try:
        await pause.approval(f"Sign {what}?", expires="10s")
    except Rejected as refused:
        return f"not signed: {refused}"
    return "signed"


@durable
async def nightly(day: str) -> str:
    return day


@effect
async def send_invoice(number: str) -> str:
    _deed(f"invoice {number} {idempotency_key()}")
    if not Path(os.environ["PERDURE_TEST_WORLD"] + ".open").exists():
        await asyncio.Event().wait()
    return f"receipt-{number}"


@durable
async def invoice(number: str) -> str:
    return await send_invoice(number)


async def take_down(up: str, name: str) -> None:
    _deed(f"down {name}")


@effect(undo=take_down)
async def put_up(name: str) -> str:
    _deed(f"up {name}")
    return name


@effect
async def announce(text: str) -> None:
    _deed(f"said {text}")


@step(flush=True)
async def measure(offset: int) -> int:
    return 10 + offset


@durable
async def launch(ship: str, offset: int = 0) -> str:
    """Puts three things up, with a checkpoint after the first, and asks before it ends."""
    ready = await checkpoint.last({"stage": 0, "fuel": 0, "crew": ["ada", "lin"]})
    if ready["stage"] == 0:
        await put_up(f"{ship} tank")
        ready = {**ready, "stage": 1, "fuel": await measure(offset)}
        await checkpoint.save(ready)
    await put_up(f"{ship} tower")
    await put_up(f"{ship} flag")
    await announce(ship)
    await pause.approval(f"Launch {ship}?")
    return f"{ship} with {ready['fuel']} and {len(ready['crew'])} on board"
