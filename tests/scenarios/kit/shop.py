"""The task of S2: charge, mail, ticket, a line in a file, a row in a database. Runs in child processes.

Three sorts of targets: (a) honour keys, (b) can be asked, (c) neither. Some effects are async and some plain,
so that both ways are walked.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import http.client
import os
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from perdure._durable import (
    DID_NOT_HAPPEN,
    Happened,
    Retry,
    durable,
    effect,
    idempotency_headers,
    idempotency_key,
)
from tests.support.processes import die

_AT_ONCE = timedelta(0)
NAMES = ("charge", "mail", "ticket", "append", "insert")


class Shop(NamedTuple):
    """Where the targets are, and what they can do."""

    mode: str  # a, b or c
    address: str
    folder: Path
    dies_in: str = ""  # the local effect in whose body the process is killed, once it is done

    @property
    def file(self) -> Path:
        return self.folder / "lines"

    @property
    def database(self) -> Path:
        return self.folder / "rows.db"


class Busy(Exception):
    """429: nothing was done."""


def post(shop: Shop, name: str, what: str) -> str:
    line = http.client.HTTPConnection(shop.address)
    with contextlib.closing(line):
        line.request("POST", f"/{name}", what, {**idempotency_headers(), "X-Pid": str(os.getpid())})
        answer = line.getresponse()
        text = answer.read().decode()
    if answer.status == 429:
        raise Busy
    return text


def ask(shop: Shop, name: str, what: str) -> Any:
    line = http.client.HTTPConnection(shop.address)
    with contextlib.closing(line):
        line.request("GET", f"/{name}?what={quote(what)}")
        text = line.getresponse().read().decode()
    return DID_NOT_HAPPEN if text == "null" else Happened(text.strip('"'))


def make(shop: Shop) -> Any:
    """The durable function, with effects as these targets allow them."""

    def settled(name: str, look: Callable[[str], Any]) -> Callable[[Callable[..., Any]], Any]:
        if shop.mode == "a":
            return effect(name=name, keyed=True, failed_on=[Busy], retry=Retry(5, wait=_AT_ONCE))
        if shop.mode == "b":
            return effect(name=name, verify=look, failed_on=[Busy], retry=Retry(5, wait=_AT_ONCE))
        return effect(name=name, failed_on=[Busy], retry=Retry(5, wait=_AT_ONCE))

    @settled("charge", lambda what: ask(shop, "charge", what))
    async def charge(what: str) -> str:
        return await asyncio.to_thread(post, shop, "charge", what)

    @settled("mail", lambda what: ask(shop, "mail", what))
    def mail(what: str) -> str:
        return post(shop, "mail", what)

    async def look_for_ticket(what: str) -> Any:
        return await asyncio.to_thread(ask, shop, "ticket", what)

    @settled("ticket", look_for_ticket)
    async def ticket(what: str) -> str:
        return await asyncio.to_thread(post, shop, "ticket", what)

    @settled("append", lambda what: Happened(what) if what in lines(shop) else DID_NOT_HAPPEN)
    def append(what: str) -> str:
        add_line(shop, what, idempotency_key())
        if shop.dies_in == "append":
            die()
        return what

    @settled("insert", lambda what: Happened(what) if what in rows(shop) else DID_NOT_HAPPEN)
    async def insert(what: str) -> str:
        add_row(shop, what, idempotency_key())
        if shop.dies_in == "insert":
            die()
        return what

    @durable(name="order")
    async def order(id: str) -> list[str]:
        return [
            await charge(f"{id} 500"),
            mail(f"thanks for {id}"),
            await ticket(f"ship {id}"),
            append(f"sold {id}"),
            await insert(f"row {id}"),
        ]

    return order


# ── a file and a database, as targets ────────────────────────────────────────────────────────────


def add_line(shop: Shop, what: str, key: str) -> None:
    """Append a line; in mode (a) the file is one whose keeper looks at keys."""
    with shop.file.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if shop.mode == "a" and any(line.split("\t")[1] == key for line in file.read().splitlines()):
            return
        file.write(f"{what}\t{key}\n")


def lines(shop: Shop) -> list[str]:
    return [line.split("\t")[0] for line in _lines(shop)]


def line_keys(shop: Shop) -> list[str]:
    return [line.split("\t")[1] for line in _lines(shop)]


def _lines(shop: Shop) -> list[str]:
    return shop.file.read_text().splitlines() if shop.file.exists() else []


def add_row(shop: Shop, what: str, key: str) -> None:
    with contextlib.closing(sqlite3.connect(shop.database)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (name TEXT, key TEXT)")
        connection.execute("BEGIN IMMEDIATE")
        known = connection.execute("SELECT count(*) FROM orders WHERE key = ?", (key,)).fetchone()[0]
        if not (shop.mode == "a" and known):
            connection.execute("INSERT INTO orders VALUES (?, ?)", (what, key))


def rows(shop: Shop) -> list[str]:
    return [row[0] for row in _rows(shop)]


def row_keys(shop: Shop) -> list[str]:
    return [row[1] for row in _rows(shop)]


def _rows(shop: Shop) -> list[tuple[str, str]]:
    if not shop.database.exists():
        return []
    with contextlib.closing(sqlite3.connect(shop.database)) as connection:
        try:
            return connection.execute("SELECT name, key FROM orders ORDER BY rowid").fetchall()
        except sqlite3.OperationalError:
            return []
