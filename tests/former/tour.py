"""One durable function that records every kind of entry, and stops half-way for an answer.

Stores that hold it half done are kept in `data`. A later perdure has to carry it on: what it recorded comes back, what
it did is not done again. So this file may be extended by new functions, and what is here must not change.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from perdure import (
    Retry,
    carry_over,
    checkpoint,
    durable,
    effect,
    frames,
    loops,
    model_call,
    patched,
    pause,
    progress,
    recorded,
    signals,
    span,
    state,
    step,
    stream,
    timeout,
    transaction,
)
from perdure.effects import DidNotHappen
from perdure.models import Price
from perdure.streams import Prefix


def did(what: str) -> None:
    """Write down, outside of every store, that a body has run."""
    with open(os.environ["TOUR_LOG"], "a", encoding="utf-8") as log:
        log.write(what + "\n")


def bank() -> sqlite3.Connection:
    return sqlite3.connect(Path(os.environ["TOUR_LOG"]).with_name("bank.db"))


def make_bank() -> None:
    with closing(bank()) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS paid(amount INTEGER)")


class NotThere(Exception):
    """A failure that the function expects."""


@step
async def fetch(what: str) -> dict[str, Any]:
    did(f"fetch {what}")
    return {"what": what, "tags": {"a", "b"}, "size": len(what)}


@step
def count(text: str) -> int:
    did(f"count {text}")
    return len(text)


@step(raises=[NotThere])
async def missing(what: str) -> None:
    did(f"missing {what}")
    raise NotThere(what)


@step(retry=Retry(3, wait=timedelta(0), on=[ConnectionError]))
async def flaky(path: str) -> str:
    did("flaky")
    if Path(os.environ["TOUR_LOG"]).read_text(encoding="utf-8").count("flaky\n") < 2:
        raise ConnectionError(path)
    return path


@step
async def forever() -> None:
    await asyncio.get_running_loop().create_future()


@step
async def items(names: list[str]) -> int:
    async for name in loops.each(names, flush=True):
        did(f"item {name}")
    await progress.mark(done=len(names), total=len(names))
    return len(names)


def return_parcel(result: str, address: str) -> None:
    did(f"returned {result}")


@effect(keyed=True, undo=return_parcel)
async def ship(address: str) -> str:
    did(f"ship {address}")
    return f"parcel to {address}"


@effect(raises=[DidNotHappen])
async def refused() -> None:
    did("refused")
    raise DidNotHappen("the shop is closed")


@effect
def ring(bell: str) -> str:
    did(f"ring {bell}")
    return "rung"


@transaction(bank)
def pay(db: sqlite3.Connection, amount: int) -> int:
    db.execute("INSERT INTO paid VALUES (?)", (amount,))
    did(f"pay {amount}")
    return amount


@model_call(model="small-1", price=Price(input=1.0, output=2.0))
async def ask(messages: list[dict[str, str]]) -> dict[str, Any]:
    did("ask")
    return {"text": "forty-two", "usage": {"input_tokens": 100, "output_tokens": 20}}


async def words(prefix: Prefix) -> AsyncIterator[str]:
    did("words")
    for word in ("one ", "two ", "three"):
        yield word


@durable(name="former.errand")
async def errand(what: str) -> str:
    return (await fetch(f"errand {what}"))["what"]  # type: ignore[no-any-return]


async def branch(name: str) -> str:
    return str((await fetch(name))["what"]) + str(await ship(name))


@durable(name="former.tour")
async def tour(order: dict[str, Any]) -> dict[str, Any]:
    """The first half of it is on record in the kept stores; the second half is run by the test."""
    told: dict[str, Any] = {"fetched": await fetch(order["name"]), "count": count("twelve chars")}
    told["now"], told["random"] = recorded.now().isoformat(), recorded.random()
    told["uuid"], told["patched"] = str(recorded.uuid4()), patched("first way")
    try:
        await missing("needle")
    except NotThere as error:
        told["missing"] = str(error)
    told["flaky"] = await flaky("path")
    told["both"] = await asyncio.gather(branch("left"), branch("right"))
    for limit in (timeout(0), asyncio.timeout(0)):
        try:
            async with limit:
                await forever()
        except TimeoutError:
            told["late"] = told.get("late", 0) + 1
    never = asyncio.get_running_loop().create_future()
    told["timer"] = len((await asyncio.wait([never], timeout=0.001))[1])
    told["thread"] = await asyncio.to_thread(len, "thread")
    try:
        await refused()
    except DidNotHappen as error:
        told["refused"] = str(error)
    told["rung"], told["paid"] = ring("door"), pay(12)
    told["asked"] = (await ask([{"role": "user", "content": "why?"}]))["text"]
    told["streamed"] = "".join([piece async for piece in stream("answer", words)])
    async with span("thinking"):
        await state.append("notes", "thought")
    await frames.push("rename", goal="one name", done=["read"], next=["write"], expires=None)
    told["items"] = await items(["x", "y"])
    told["child"] = await errand("for the tour")
    told["signal"] = await signals.next("ready", int)
    told["answer"] = await pause.input("go on?", str)
    told["after"] = (await fetch("after"))["size"]
    told["shipped"] = await ship("home")
    frame = await frames.resume()
    told["frame"] = frame.goal if frame else None
    return told


@durable(name="former.lines")
async def lines(done: int = 0) -> int:
    await fetch(f"line {done}")
    if done < 2:
        await carry_over(done + 1)
    await pause.approval("the last line?")
    return done


@durable(name="former.saves")
async def saves() -> dict[str, int]:
    at = await checkpoint.last({"n": 0})
    while at["n"] < 4:
        await fetch(f"number {at['n']}")
        at = {"n": at["n"] + 1}
        await checkpoint.save(at, label=f"number {at['n']}")
        if at["n"] == 2:
            await pause.approval("the rest too?")
    return at


@durable(name="former.cut")
async def cut(what: str) -> str:
    await fetch("before the cut")
    return await dies(what)


@effect
async def dies(what: str) -> str:
    """The process is killed inside of it when the store is written; the next one does not know what became of it."""
    did(f"dies {what}")
    if os.environ.get("TOUR_DIES"):
        os.kill(os.getpid(), 9)
    return what
