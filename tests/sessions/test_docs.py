"""What the guide and the example show."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from perdure import Perdure, durable, pause, runtime, step
from tests.durable.effects_kit import wait_until
from tests.runtime.kit import Place

ROOT = Path(__file__).parents[2]


def test_the_example_dies_in_its_transaction_and_goes_on_in_it(postgres_url: str, tmp_path: Path) -> None:
    place = Place(tmp_path / ".perdure" / "perdure.db")
    (tmp_path / ".perdure").mkdir()
    script = [sys.executable, str(ROOT / "examples" / "kept_transaction.py"), postgres_url]
    try:
        first = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert first.returncode == -signal.SIGKILL, first.stderr
        second = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert second.returncode == 0, second.stderr
    finally:
        place.clear()
    backend = first.stdout.split("backend ")[1].split(";")[0]
    assert f"still in the transaction of backend {backend}: [('Walden',)]" in second.stdout


@dataclass
class Order:
    id: int
    cents: int


@step
async def reserve(con: Any, order: Order) -> None:
    await con.execute("UPDATE orders SET cents = %s WHERE id = %s", (order.cents, order.id))


def blocks() -> list[str]:
    text = (ROOT / "docs" / "guide" / "sessions.md").read_text()
    return [part.split("```")[0] for part in text.split("```python\n")[1:]]


def shown(beginning: str, names: dict[str, Any]) -> Any:
    """The function of the guide that begins like this; a block without one is made a durable function."""
    (block,) = [block for block in blocks() if beginning in block]
    if not block.startswith("@durable"):
        block = f"@durable\nasync def {names['called']}():\n{textwrap.indent(block, '    ')}"
    names = names | {"durable": durable, "runtime": runtime, "pause": pause, "reserve": reserve, "Order": Order}
    exec(f"from __future__ import annotations\n{block}", names)
    return next(found for name, found in names.items() if name in block and hasattr(found, "options"))


@contextlib.asynccontextmanager
async def on_a_place(tmp_path: Path) -> AsyncIterator[Perdure]:
    place = Place(tmp_path / "store" / "perdure.db")
    try:
        async with Perdure(place.url) as app:
            yield app
    finally:
        place.clear()


async def is_there(app: Perdure) -> bool:
    return await app.tasks.get("work") is not None


def outside(url: str, sql: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def orders(postgres_url: str) -> str:
    outside(postgres_url, "CREATE TABLE orders (id int, cents int, booked bool)")
    outside(postgres_url, "CREATE TABLE archive (LIKE orders)")
    outside(postgres_url, "INSERT INTO orders VALUES (1, 0, false), (2, 0, false)")
    return postgres_url


async def test_the_first_lines_of_the_guide_connect(orders: str, tmp_path: Path) -> None:
    async with on_a_place(tmp_path) as app:
        await app.run("work", shown("psycopg; may already", {"dsn": orders, "called": "first"}))


async def test_the_transfer_of_the_guide_waits_in_its_transaction(orders: str, tmp_path: Path) -> None:
    async with on_a_place(tmp_path) as app:
        running = asyncio.create_task(app.run("work", shown("def transfer", {"dsn": orders}), Order(1, 500)))
        await wait_until(lambda: is_there(app))
        await app.tasks.wait_for("work", status="paused")
        assert outside(orders, "SELECT cents FROM orders WHERE id = 1") == [(0,)]
        await (await app.tasks.open("work")).approve(by="ada")
        await running
    assert outside(orders, "SELECT cents, booked FROM orders WHERE id = 1") == [(500, True)]


async def test_the_migration_of_the_guide_moves_every_row_once(orders: str, tmp_path: Path) -> None:
    async with on_a_place(tmp_path) as app:
        await app.run("work", shown("def migrate", {"dsn": orders}), [1, 2])
    assert outside(orders, "SELECT id FROM archive ORDER BY id") == [(1,), (2,)]
    assert outside(orders, "SELECT id FROM orders") == []


async def test_the_sqlite_lines_of_the_guide_write_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "books.db")) as books:
        books.execute("CREATE TABLE books (id int, title text)")
    (block,) = [block for block in blocks() if "rt.sqlite" in block]
    async with on_a_place(tmp_path) as app:
        await app.tasks.open("work", state={})
        lines = textwrap.indent(f"{block}\nreturn rows", "    ")
        names: dict[str, Any] = {"rt": await app.runtime("work")}
        exec(f"async def read():\n{lines}", names)
        assert [tuple(row) for row in await names["read"]()] == [(1, "Walden")]


def test_every_python_block_of_the_guide_is_run_here_or_in_test_pools() -> None:
    run = ("psycopg; may already", "def transfer", "def migrate", "rt.sqlite", "create_engine")
    assert [sum(beginning in block for beginning in run) for block in blocks()] == [1] * len(run)
