"""A task of four effects that are undone, and a transaction of several statements. Runs in child processes."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from typing import Any

import psycopg

from perdure._durable import Effect, durable, effect, transaction
from perdure._ground import crash_points as crash
from perdure.errors import TaskFailed
from tests.durable.effects_kit import until_paused
from tests.scenarios.kit import shop as shops
from tests.scenarios.kit.shop import Shop, post
from tests.support.processes import Link, die
from tests.torture.kills import Home

STATEMENTS = 4


def make_booking(shop: Shop) -> Any:
    """Four bookings, the fourth of which never returns; each is undone by a keyed cancellation."""

    @effect(name="unbook", keyed=True)
    async def unbook(receipt: str, what: str) -> str:
        return await asyncio.to_thread(post, shop, "unbook", f"{what} ({receipt})")

    @effect(name="book", undo=unbook, keyed=True)
    async def book(what: str) -> str:
        return await asyncio.to_thread(post, shop, "book", what)

    @durable(name="trip")
    async def trip() -> None:
        for what in ("flight", "hotel", "car", "dinner"):
            await book(what)

    return trip


async def travel(_: Link, home: Home, shop: Shop) -> None:
    """Carry the trip on; the target kills this process in the middle of the fourth booking."""
    async with home.open() as app:
        await app.run("trip", make_booking(shop))


async def call_off(_: Link, home: Home, shop: Shop, place: str, count: int) -> str:
    """Cancel the task, in a process that has never worked on it; perhaps be killed on the way."""
    make_booking(shop)
    if place:
        crash.arm(place, count)
    async with home.open() as app:
        task = await app.tasks.handle("trip")
        await task.cancel()
        return task.status


async def carry_on_trip(_: Link, home: Home, shop: Shop) -> str:
    async with home.open() as app:
        try:
            await app.run("trip", make_booking(shop))
        except TaskFailed as error:
            return error.status
        return "ended"


# ── a transaction ────────────────────────────────────────────────────────────────────────────────


def connect(place: str) -> Any:
    return psycopg.connect(place) if place.startswith("postgresql") else sqlite3.connect(place)


def make_filling(place: str, dies_after: int) -> Any:
    mark = "%s" if place.startswith("postgresql") else "?"

    @transaction(lambda: connect(place), name="fill")
    def fill(connection: Any, what: str) -> int:
        for number in range(STATEMENTS):
            connection.execute(f"INSERT INTO rows VALUES ({mark}, {mark})", (what, number))
            if number == dies_after:
                die()
        return STATEMENTS

    made: Effect[..., int] = fill

    @durable(name="filling")
    async def filling() -> int:
        return made("x")

    return filling


async def fill(_: Link, home: Home, place: str, dies_after: int, at: str) -> Any:
    if at:
        crash.arm(at)
    async with home.open() as app:
        return await until_paused(app, "filling", make_filling(place, dies_after))


def rows_and_markers(place: str) -> tuple[int, int]:
    with contextlib.closing(connect(place)) as connection:
        found = connection.execute("SELECT count(*) FROM rows").fetchone()[0]
        try:
            return found, connection.execute("SELECT count(*) FROM perdure_markers").fetchone()[0]
        except (sqlite3.OperationalError, psycopg.errors.UndefinedTable):
            return found, 0


def prepare_rows(place: str) -> None:
    with contextlib.closing(connect(place)) as connection:
        connection.execute("CREATE TABLE rows (what TEXT, number INTEGER)")
        connection.commit()


# ── a command that is answered late, or not at all ───────────────────────────────────────────────


async def order_once(_: Link, home: Home, shop: Shop) -> tuple[str, Any, list[tuple[Any, ...]]]:
    """One run that nobody disturbs; what came of it, and its ledger."""
    async with home.open() as app:
        found = await until_paused(app, "order", shops.make(shop), "o-1")
        ledger = [(one.name, one.state, one.tries) for one in await app.effects.of("order")]
        message = getattr(found, "message", None)
        return ("paused", message, ledger) if message else ("ended", found, ledger)
