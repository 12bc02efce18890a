"""What a statement depends on is on disk before it leaves the process: a kill leaves no statement of a lost result."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from perdure import Perdure, durable, runtime, step
from perdure._store import committer
from tests.runtime.kit import Place
from tests.support.processes import Link, Nursery, nursery

pytestmark = pytest.mark.req("R79")


@step
def draw() -> int:
    """A short step: the code has its result before it is on disk."""
    return random.randrange(1_000_000_000)


@durable(name="draws-and-inserts")
async def insert(target: str, in_block: bool) -> int:
    rt = await runtime.open()
    con: Any
    if target.startswith("postgresql"):
        con = await (await rt.postgres("main", target, hold="10m")).connect(autocommit=True)
    else:
        con = await rt.sqlite("main", target)
    async with con.transaction() if in_block else nullcontext():
        number = draw()
        await con.execute(f"INSERT INTO t VALUES ({number})")
        if os.environ.get("DIES"):
            os.kill(os.getpid(), signal.SIGKILL)
    return number


async def attempt(link: Link, store: str, target: str, in_block: bool, dies: bool) -> int:
    if dies:
        os.environ["DIES"] = "yes"
        committer.GATHERING = 60.0  # what nobody waits for is not on disk when it dies
    async with Perdure(store) as app:
        result: int = await app.run("draws", insert, target, in_block)
        return result


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "store" / "perdure.db")
    try:
        yield place
    finally:
        place.clear()


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as started:
        yield started


@pytest.mark.parametrize("in_block", [True, False], ids=["in a transaction", "alone"])
def test_a_step_just_before_a_statement_is_not_drawn_again_on_sqlite(
    place: Place, children: Nursery, tmp_path: Path, in_block: bool
) -> None:
    file = tmp_path / "t.db"
    rows = apsw.Connection(str(file))
    rows.execute("CREATE TABLE t (x)")
    children.start(attempt, place.url, str(file), in_block, True).wait()
    result = children.run(attempt, place.url, str(file), in_block, False)
    assert list(rows.execute("SELECT x FROM t")) == [(result,)]


@pytest.mark.parametrize("in_block", [True, False], ids=["in a transaction", "alone"])
def test_a_step_just_before_a_statement_is_not_drawn_again_on_postgres(
    place: Place, children: Nursery, postgres_url: str, in_block: bool
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as rows:
        rows.execute("CREATE TABLE t (x bigint)")
        children.start(attempt, place.url, postgres_url, in_block, True).wait()
        result = children.run(attempt, place.url, postgres_url, in_block, False)
        assert rows.execute("SELECT x FROM t").fetchall() == [(result,)]
