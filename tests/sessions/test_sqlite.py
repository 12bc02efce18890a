"""A SQLite transaction stays open over the death of its client."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure import pause
from perdure._durable import step
from perdure._ground.clock import MovableClock
from perdure._runtime.sessions.session_processes import ask
from perdure._runtime.sessions.sqlite import SqliteSession, open_sqlite
from perdure.errors import InvalidInput, SessionLost, SessionUnavailable, SqlFailed
from tests.replay.kit import play
from tests.runtime.kit import Place as RuntimePlace
from tests.sessions.kit import Stage, be_sqlite_client
from tests.sessions.replays import finished
from tests.support.processes import Link, Nursery, say


@pytest.fixture
def file(tmp_path: Path) -> Path:
    connection = apsw.Connection(str(tmp_path / "user.db"))
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    return tmp_path / "user.db"


@pytest.fixture
def stage(children: Nursery) -> Iterator[Stage]:
    folder = Path(tempfile.mkdtemp(prefix="pds-"))
    with Stage(children, folder, "") as made:
        yield made
    shutil.rmtree(folder, ignore_errors=True)


async def opened(stage: Stage, file: Path, **options: Any) -> SqliteSession:
    return await open_sqlite(stage.place, "main", file, **options)


def outside(file: Path) -> list[Any]:
    connection = apsw.Connection(str(file))
    try:
        return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]
    finally:
        connection.close()


async def leave_open(link: Link, session: SqliteSession) -> None:
    await session.execute("PRAGMA foreign_keys = ON")
    await session.execute("BEGIN IMMEDIATE")
    await session.execute("CREATE TEMP TABLE mine (a)")
    await session.execute("INSERT INTO t VALUES (?)", (1,))
    say(link)
    await asyncio.Event().wait()


async def run_long(link: Link, session: SqliteSession) -> None:
    await session.execute("BEGIN IMMEDIATE")
    say(link)
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
    await session.execute(f"INSERT INTO t {count} SELECT count(*) FROM n")


async def test_a_file_that_another_session_holds_is_told_with_a_way_to_end_that(stage: Stage, file: Path) -> None:
    session = await opened(stage, file)
    await session.execute("PRAGMA busy_timeout = 0")
    other = apsw.Connection(str(file))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(SqlFailed, match="database is locked") as failed:
        await session.execute("INSERT INTO t VALUES (1)")
    assert "perdure units" in str(failed.value)
    other.close()
    await session.execute("INSERT INTO t VALUES (1)")
    assert outside(file) == [1]


@pytest.mark.req("R79")
async def test_the_next_client_goes_on_in_the_transaction(stage: Stage, file: Path) -> None:
    await opened(stage, file)
    client = stage.children.start(be_sqlite_client, str(stage.folder), str(file), leave_open)
    client.heard()
    client.kill()
    stage.wait("alone")
    assert outside(file) == []

    session = await opened(stage, file)
    assert session.level == "kept"
    assert "the transaction is open" in session.verdict.same
    assert session.in_transaction
    assert await session.fetch("SELECT x FROM t") == [(1,)]
    assert await session.fetch("SELECT count(*) FROM mine") == [(0,)]
    assert await session.fetch("PRAGMA foreign_keys") == [(1,)]
    await session.execute("COMMIT")
    assert outside(file) == [1]


async def test_a_statement_in_flight_ends_and_its_outcome_is_kept(stage: Stage, file: Path) -> None:
    await opened(stage, file)
    client = stage.children.start(be_sqlite_client, str(stage.folder), str(file), run_long)
    client.heard()
    while not (state := ask(next(stage.folder.glob("sq-*")), {"ask": "state"})) or not (
        state["busy"] or (state["outcome"] or {})["statement"].startswith("INSERT")
    ):
        pass
    client.kill()
    stage.wait("alone")
    session = await opened(stage, file)
    assert session.last_outcome is not None
    assert (session.last_outcome.changes, session.last_outcome.transaction) == (1, "open")
    assert await session.fetch("SELECT x FROM t") == [(300000,)]


async def test_values_come_back_as_they_were(stage: Stage, file: Path) -> None:
    session = await opened(stage, file)
    values = ("text ü\n", 2**62, -1.5, b"\x00\xff", None)
    assert await session.fetch("SELECT ?, ?, ?, ?, ?", values) == [values]
    result = await session.execute("SELECT :a AS a", {"a": 1})
    assert (result.columns, result.one()) == (["a"], (1,))
    await session.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(1300)])
    assert len(await session.fetch("SELECT x FROM t")) == 1300
    with pytest.raises(InvalidInput, match="no set"):
        await session.execute("SELECT ?", ({1},))
    with pytest.raises(SqlFailed, match="no such table"):
        await session.execute("SELECT * FROM absent")


async def test_a_newer_client_fences_the_older(stage: Stage, file: Path) -> None:
    older = await opened(stage, file)
    await older.execute("BEGIN")
    newer = await opened(stage, file)
    with pytest.raises(SessionLost):
        await older.execute("COMMIT")
    assert newer.in_transaction


async def test_the_hold_limit_rolls_back_and_is_told(stage: Stage, file: Path, clock: MovableClock) -> None:
    stage.env = {"PERDURE_TEST_CLOCK": str(clock.path)}
    session = await opened(stage, file, hold="10m")
    await session.execute("BEGIN IMMEDIATE")
    await session.execute("INSERT INTO t VALUES (1)")
    session.cut_off()
    stage.wait("alone")
    clock.advance(minutes=9)
    assert stage.wait("quiet")["transaction"] == "open"
    clock.advance(minutes=2)
    stage.wait("none")
    session = await opened(stage, file)
    assert any("hold limit" in told for told in session.verdict.since_you_left)
    assert not session.in_transaction


async def test_a_holder_that_dies_is_lost_with_the_reason(stage: Stage, file: Path) -> None:
    session = await opened(stage, file)
    await session.execute("BEGIN IMMEDIATE")
    await session.execute("INSERT INTO t VALUES (1)")
    stage.kill_proxy()
    with pytest.raises(SessionLost):
        await session.execute("COMMIT")
    again = await opened(stage, file)
    assert again.level == "lost"
    assert "rolled back" in again.verdict.reason
    assert await again.fetch("SELECT count(*) FROM t") == [(0,)]
    assert (await opened(stage, file)).level == "kept"  # it was told


async def test_blocks_commit_roll_back_and_nest(stage: Stage, file: Path) -> None:
    session = await opened(stage, file)

    async def fail(x: int) -> None:
        async with session.transaction():
            await session.execute("INSERT INTO t VALUES (?)", (x,))
            raise ZeroDivisionError

    async with session.transaction():
        await session.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(ZeroDivisionError):
            await fail(2)
    with pytest.raises(ZeroDivisionError):
        await fail(3)
    assert outside(file) == [1]


@step(identity=lambda session, x: x)
async def insert(session: SqliteSession, x: int) -> None:
    await session.execute("INSERT INTO t VALUES (?)", (x,))


@pytest.mark.parametrize("holder_dies", [False, True])
async def test_a_pause_in_a_block_leaves_the_transaction_to_the_next_attempt(
    stage: Stage, file: Path, holder_dies: bool
) -> None:
    async def program() -> None:
        session = await opened(stage, file)
        async with session.transaction():
            await insert(session, 1)
        async with session.transaction():
            await insert(session, 2)
            await pause.input("more?", str)
            await insert(session, 3)

    paused = await play(program)
    assert outside(file) == [1]
    if holder_dies:
        stage.kill_proxy()
    [path] = paused.attempt.unwinding.questions
    (await finished(program, paused.journal, {path: {"value": "yes"}})).result()
    assert outside(file) == [1, 2, 3]


async def test_what_cannot_be_opened_is_told(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "no.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(SessionUnavailable, match="not a database"):
        await opened(stage, tmp_path / "no.db")
    with pytest.raises(InvalidInput, match="no folder"):
        await opened(stage, tmp_path / "nowhere" / "x.db")


async def test_a_task_has_it_by_its_runtime_and_never_on_the_store_itself(tmp_path: Path, file: Path) -> None:
    place = RuntimePlace(tmp_path / "store" / "perdure.db")
    try:
        async with place.runtime() as rt:
            session = await rt.sqlite("books", file)
            async with session.transaction():
                await session.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(InvalidInput, match="the store itself"):
                await rt.sqlite("store", tmp_path / "store" / "perdure.db")
    finally:
        place.clear()
    assert outside(file) == [1]


async def test_a_session_without_a_keeper_ends_when_nobody_comes_any_more(
    stage: Stage, file: Path, clock: MovableClock
) -> None:
    stage.env = {"PERDURE_TEST_CLOCK": str(clock.path)}
    session = await opened(stage, file, hold="10m")
    await session.close()
    stage.wait("alone")
    clock.advance(minutes=71)
    assert stage.proxies[-1].wait() == 0
