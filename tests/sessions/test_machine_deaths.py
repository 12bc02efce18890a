"""The agent, its session and all that the session had noted are gone at once: the journal and the database decide."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from perdure import Perdure
from perdure._durable import durable, step
from perdure._ground import crash_points as crash
from perdure._runtime.sessions import lone_statements
from perdure._runtime.sessions.lone_statements import forget_lone
from perdure._runtime.sessions.postgres import open_postgres
from perdure._runtime.sessions.session_processes import SessionPlace, ask
from perdure._runtime.sessions.sqlite import open_sqlite
from perdure.errors import StatementUnanswered, TransactionLost
from perdure.keeper.pgproxy.recovery import postmortem
from perdure.keeper.pgproxy.recovery.trace import Server
from tests.sessions.kit import Stage
from tests.support.processes import Link

where: dict[str, Any] = {}


@step(identity=lambda con, x: x)
async def insert(con: Any, x: int) -> None:
    await con.execute(
        "INSERT INTO t VALUES (%s)" if where["engine"] == "postgres" else "INSERT INTO t VALUES (?)", (x,)
    )


async def opened() -> Any:
    if where["engine"] == "sqlite":
        return await open_sqlite(where["place"], "main", where["url"])
    return await (await open_postgres(where["place"], "main", where["url"], hold="10m")).connect()


@durable(name="sessions.machine-death-block")
async def in_a_block() -> str:
    con = await opened()
    async with con.transaction():
        await insert(con, 1)
        await insert(con, 2)
    await con.close()
    return "done"


@durable(name="sessions.machine-death-commit")
async def without_a_block() -> str:
    con = await opened()
    if where["engine"] == "sqlite":
        await con.execute("BEGIN IMMEDIATE")
    await insert(con, 1)
    await insert(con, 2)
    await (con.commit() if where["engine"] == "postgres" else con.execute("COMMIT"))
    await con.close()
    return "done"


@step(identity=lambda con, x: x)
async def insert_alone(con: Any, x: int) -> None:
    """Two statements by themselves; the process dies between the second one and the end of the second step."""
    for y in (x, -x):
        text = "INSERT INTO t VALUES (%s)" if where["engine"] == "postgres" else "INSERT INTO t VALUES (?)"
        await con.execute(text, (y,))
    if x == 2:
        crash.place("test.done")


@step
async def count(con: Any) -> int:
    cursor = await con.execute("SELECT count(*) FROM t")
    rows = cursor.rows if where["engine"] == "sqlite" else await cursor.fetchall()
    crash.place("test.counted")
    return int(rows[0][0])


async def opened_alone() -> Any:
    if where["engine"] == "sqlite":
        return await open_sqlite(where["place"], "main", where["url"])
    session = await open_postgres(where["place"], "main", where["url"], hold="10m")
    return await session.connect(autocommit=True)


@durable(name="sessions.machine-death-alone")
async def alone() -> str:
    con = await opened_alone()
    await insert_alone(con, 1)
    await insert_alone(con, 2)
    assert await count(con) >= 4
    await con.close()
    return "done"


FUNCTIONS = {"block": in_a_block, "commit": without_a_block, "alone": alone}


async def be_agent(link: Link, engine: str, folder: str, parking: str, url: str, store: str, *what: str) -> None:
    """Run the task until it is killed at a place."""
    where.update(engine=engine, place=SessionPlace(Path(folder), Path(parking)), url=url)
    how, place = what
    crash.arm(place)
    async with Perdure(store) as app:
        await app.run("task", FUNCTIONS[how])


class Machine:
    """The agent's: it dies with everything in its memory. The database and the store stay."""

    def __init__(self, stage: Stage, engine: str, url: str, store: Path) -> None:
        self.stage, self.engine, self.url, self.store = stage, engine, url, f"sqlite://{store}/perdure.db"
        where.update(engine=engine, place=stage.place, url=url)

    async def work_and_die(self, how: str, place: str, removed: str = "folder") -> None:
        await opened()  # by the stage, whose processes the test can kill
        stage = self.stage
        arguments = (self.engine, str(stage.folder), str(stage.parking), self.url, self.store, how, place)
        assert stage.children.start(be_agent, *arguments).wait() == -9
        stage.parker.kill()
        stage.kill_proxy()
        for folder in stage.folder.glob("??-*"):
            if removed == "folder":
                shutil.rmtree(folder)
            else:
                for name in ("trace", "held", "was-here", "ledger"):
                    (folder / name).unlink(missing_ok=True)
        stage.parking.unlink()
        stage.__enter__()

    async def go_on(self, how: str, *, has_failed: bool = False) -> str:
        async with Perdure(self.store) as app:
            if has_failed:
                await (await app.tasks.handle("task")).resume()
            return await app.run("task", FUNCTIONS[how])


@pytest.fixture
def machine(stage: Stage, tmp_path: Path) -> Machine:
    stage.outside("CREATE TABLE t (x int)")
    return Machine(stage, "postgres", stage.url, tmp_path)


def rows(machine: Machine) -> list[int]:
    with psycopg.connect(machine.url) as connection:
        return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]


@pytest.mark.req("R79")
@pytest.mark.parametrize("how", ["block", "commit"])
@pytest.mark.parametrize("place", ["session.commits", "session.committed"])
async def test_a_commit_is_done_once_when_only_the_journal_and_the_server_remember_it(
    machine: Machine, how: str, place: str
) -> None:
    await machine.work_and_die(how, place)
    if place == "session.committed":
        assert rows(machine) == [1, 2]
    assert await machine.go_on(how) == "done"
    assert rows(machine) == [1, 2]


@pytest.mark.req("R79", "R89")
async def test_what_the_server_cannot_say_is_uncertain_and_not_run_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await machine.work_and_die("block", "session.committed")
    monkeypatch.setattr(postmortem, "server_of", lambda _: Server(system="another", timeline="1"))
    with pytest.raises(TransactionLost, match="uncertain: another server answers") as raised:
        await machine.go_on("block")
    assert raised.value.is_uncertain
    assert "check in the database whether it was committed" in str(raised.value)
    assert rows(machine) == [1, 2]


async def test_the_number_asked_for_the_journal_serves_the_commit_too(stage: Stage) -> None:
    """The trace has the same number, and a statement in between makes it void."""
    stage.outside("CREATE TABLE t (x int)")
    con = await stage.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    number = str((await (await con.execute("SELECT txid_current()")).fetchone())[0])
    state = ask(con.session.folder, {"ask": "number"})
    assert state is not None and state["number"] == number and state["server"]["system"]
    assert state["transaction"] == "open"
    await con.execute("INSERT INTO t VALUES (2)")
    state = ask(con.session.folder, {"ask": "state"})
    assert state is not None and state["number"] is None
    await con.commit()
    assert stage.outside("SELECT count(*) FROM t") == 2


async def _is_asked_about(machine: Machine, rows: Callable[[Machine], list[int]]) -> None:
    await machine.work_and_die("alone", "test.done")
    assert rows(machine) == [-2, -1, 1, 2]
    for has_failed in (False, True):  # and it stays so
        with pytest.raises(StatementUnanswered, match="went out before the machine"):
            await machine.go_on("alone", has_failed=has_failed)
    assert rows(machine) == [-2, -1, 1, 2]
    async with Perdure(machine.store) as app:
        task = await app.tasks.handle("task")
        await forget_lone(app._store, task.id, task.uid, "main")
    assert await machine.go_on("alone", has_failed=True) == "done"
    assert rows(machine) == [-2, -2, -1, 1, 2, 2]


@pytest.mark.req("R79", "R89")
async def test_statements_by_themselves_whose_machine_died_are_asked_about_and_not_repeated(machine: Machine) -> None:
    await _is_asked_about(machine, rows)


@pytest.mark.req("R79", "R89")
async def test_a_read_whose_machine_died_is_repeated(machine: Machine) -> None:
    await machine.work_and_die("alone", "test.counted")
    assert await machine.go_on("alone") == "done"
    assert rows(machine) == [-2, -1, 1, 2]


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["delete", "wal"])
def sqlite_machine(stage: Stage, tmp_path: Path, request: pytest.FixtureRequest) -> Machine:
    file = tmp_path / "user.db"
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA journal_mode = {request.param}")
        connection.execute("CREATE TABLE t (x int)")
    connection.close()
    return Machine(stage, "sqlite", str(file), tmp_path)


def sqlite_rows(machine: Machine) -> list[int]:
    connection = sqlite3.connect(machine.url)
    try:
        return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]
    finally:
        connection.close()


@pytest.mark.req("R79")
@pytest.mark.parametrize("how", ["block", "commit"])
async def test_a_sqlite_commit_that_never_went_out_is_done_once(sqlite_machine: Machine, how: str) -> None:
    await sqlite_machine.work_and_die(how, "session.commits")
    assert await sqlite_machine.go_on(how) == "done"
    assert sqlite_rows(sqlite_machine) == [1, 2]


@pytest.mark.req("R79")
@pytest.mark.parametrize("how", ["block", "commit"])
async def test_a_sqlite_commit_is_known_by_its_marker(sqlite_machine: Machine, how: str) -> None:
    await sqlite_machine.work_and_die(how, "session.committed", removed="trace")
    assert await sqlite_machine.go_on(how) == "done"
    assert sqlite_rows(sqlite_machine) == [1, 2]


@pytest.mark.req("R79", "R89")
@pytest.mark.parametrize("how", ["block", "commit"])
async def test_a_sqlite_commit_whose_marker_is_gone_too_is_uncertain_and_not_done_again(
    sqlite_machine: Machine, how: str
) -> None:
    await sqlite_machine.work_and_die(how, "session.committed")
    assert sqlite_rows(sqlite_machine) == [1, 2]
    with pytest.raises(TransactionLost, match="whether it was committed is uncertain"):
        await sqlite_machine.go_on(how)
    assert sqlite_rows(sqlite_machine) == [1, 2]


@pytest.mark.req("R79", "R89")
async def test_sqlite_statements_by_themselves_whose_machine_died_are_asked_about(sqlite_machine: Machine) -> None:
    await _is_asked_about(sqlite_machine, sqlite_rows)


@pytest.mark.parametrize(
    "text, is_read",
    [
        ("SELECT count(*) FROM t WHERE x IN (1, 2)", True),
        ("select a from t;", True),
        ("SELECT nextval('numbers')", False),
        ("SELECT a INTO other FROM t", False),
        ("SELECT 1; DELETE FROM t", False),
        ("WITH gone AS (DELETE FROM t RETURNING x) SELECT x FROM gone", False),
        ("SELECT lo_unlink (7)", False),
        ('SELECT "writes" (1)', False),
        ("INSERT INTO t VALUES (1)", False),
    ],
)
def test_only_what_surely_changes_nothing_is_taken_for_a_read(text: str, is_read: bool) -> None:
    assert lone_statements._only_reads(text) == is_read
