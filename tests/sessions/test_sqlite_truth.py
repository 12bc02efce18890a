"""A SQLite session is told as what it is: after its holder's death, and when its file is not the one it was."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure._durable import step
from perdure._runtime.sessions.session_processes import SessionPlace, ask
from perdure._runtime.sessions.sqlite import SqliteSession, open_sqlite
from perdure.errors import SessionLost
from perdure.keeper.sqlite_holder import witness as sqlitewitness
from perdure.keeper.sqlite_holder.witness import Log, WalPlace
from tests.replay.kit import play
from tests.runtime.kit import Place, is_alive, until
from tests.sessions.kit import Stage, be_holder
from tests.support.processes import Link, Nursery, die


@pytest.fixture(params=["delete", "truncate", "wal"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def file(tmp_path: Path, mode: str) -> Path:
    return made(tmp_path / "user.db", mode)


def made(path: Path, mode: str = "delete") -> Path:
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", mode)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    return path


@pytest.fixture
def stage(children: Nursery) -> Iterator[Stage]:
    folder = Path(tempfile.mkdtemp(prefix="pds-"))
    with Stage(children, folder, "") as here:
        yield here
    shutil.rmtree(folder, ignore_errors=True)


def outside(file: Path) -> list[Any]:
    connection = apsw.Connection(f"file:{file}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]
    finally:
        connection.close()


async def opened(stage: Stage, file: Path) -> SqliteSession:
    return await open_sqlite(stage.place, "main", file)


# ── the holder's death ───────────────────────────────────────────────────────────────────────────


def be_mortal_holder(link: Link, config: dict[str, Any], moment: str, word: str) -> None:
    """A holder that is killed just before, or just after, SQLite has done a statement with this word."""
    before, after = sqlitewitness.Witness.before, sqlitewitness.Witness.after
    asked = [""]

    def note(self: Any, sql: str, blocks: dict[str, Any]) -> None:
        before(self, sql, blocks)
        asked[0] = sql
        if moment == "before" and word in sql:
            die()

    def rest(self: Any, blocks: dict[str, Any]) -> None:
        if moment == "after" and word in asked[0]:
            die()
        after(self, blocks)

    sqlitewitness.Witness.before, sqlitewitness.Witness.after = note, rest  # type: ignore[method-assign]
    be_holder(link, config)


def mortal(stage: Stage, moment: str, word: str) -> SessionPlace:
    """Where the next holder is one that will be killed, and those after it are not."""
    words = [word]

    def launch(_program: str, config: dict[str, Any], _folder: Path) -> dict[str, Any]:
        dies = (be_mortal_holder, config, moment, words.pop()) if words else (be_holder, config)
        stage.proxies.append(stage.children.start(*dies))
        answer: dict[str, Any] = stage.proxies[-1].heard()
        return answer

    return SessionPlace(stage.folder, None, launch)


@pytest.mark.req("R79", "R89")
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_holder_killed_at_its_commit(stage: Stage, file: Path, moment: str) -> None:
    place = mortal(stage, moment, "COMMIT")
    session = await open_sqlite(place, "main", file)
    await session.execute("BEGIN IMMEDIATE")
    await session.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(SessionLost):
        await session.execute("COMMIT")
    stage.proxies[-1].wait()

    session = await open_sqlite(place, "main", file)
    assert session.level == "lost"
    assert session.last_outcome is not None and session.last_outcome.statement == "COMMIT"
    rows = outside(file)
    assert rows == ([1] if moment == "after" else [])
    assert session.last_outcome.state == ("done" if rows else "undone")
    assert ("it was committed" in session.verdict.for_model("main")) == bool(rows)
    assert sorted(path.name for path in file.parent.glob("user.db*-mj*")) == []


@pytest.mark.req("R79", "R89")
async def test_a_file_made_where_the_deleted_one_was_is_another_file_though_it_has_its_inode(
    stage: Stage, file: Path, mode: str
) -> None:
    """ext4 gives the inode of a deleted file to the next one; on other file systems this is an ordinary new file."""
    session = await opened(stage, file)
    await session.execute("BEGIN IMMEDIATE")
    await session.execute("INSERT INTO t VALUES (1)")
    stage.kill_proxy()
    for path in file.parent.glob("user.db?*"):
        path.unlink()
    file.unlink()
    made(file, mode)
    again = await opened(stage, file)
    assert again.level == "lost"
    assert f"another file stands at {file}" in again.verdict.differs


@pytest.mark.req("R79")
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_a_holder_killed_after_its_last_transaction_tells_how_that_ended(
    stage: Stage, file: Path, end: str
) -> None:
    session = await opened(stage, file)
    for sql in ("BEGIN IMMEDIATE", "INSERT INTO t VALUES (1)", end):
        await session.execute(sql)
    await session.close()
    for _ in range(2):  # the second holder dies before anybody has used it
        stage.kill_proxy()
        session = await opened(stage, file)
        assert session.level == "lost"
        told = "its last transaction was committed" in session.verdict.since_you_left
        assert told == (end == "COMMIT")
    assert outside(file) == ([1] if end == "COMMIT" else [])


@pytest.mark.parametrize("moment, state", [("before", "undone"), ("after", "uncertain")])
async def test_a_holder_killed_at_a_statement_that_commits_itself(
    stage: Stage, file: Path, moment: str, state: str
) -> None:
    place = mortal(stage, moment, "INSERT")
    session = await open_sqlite(place, "main", file)
    with pytest.raises(SessionLost):
        await session.execute("INSERT INTO t VALUES (1)")
    stage.proxies[-1].wait()
    session = await open_sqlite(place, "main", file)
    assert session.last_outcome is not None
    assert (session.last_outcome.statement, session.last_outcome.state) == ("INSERT INTO t VALUES (1)", state)
    assert "INSERT INTO t VALUES (1): was under way" in session.verdict.for_model("main")
    assert outside(file) == ([1] if moment == "after" else [])


async def test_a_holder_killed_in_the_middle_of_a_transaction(stage: Stage, file: Path) -> None:
    place = mortal(stage, "after", "(2)")
    session = await open_sqlite(place, "main", file)
    await session.execute("BEGIN IMMEDIATE")
    await session.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(SessionLost):
        await session.execute("INSERT INTO t VALUES (2)")
    stage.proxies[-1].wait()
    session = await open_sqlite(place, "main", file)
    assert session.last_outcome is not None and session.last_outcome.state == "undone"
    assert "INSERT INTO t VALUES (2): was under way, and was rolled back" in session.verdict.for_model("main")
    assert outside(file) == []


async def test_what_others_have_written_since_is_not_taken_for_ours(stage: Stage, file: Path, mode: str) -> None:
    place = mortal(stage, "before", "COMMIT")
    session = await open_sqlite(place, "main", file)
    await session.execute("BEGIN IMMEDIATE")
    await session.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(SessionLost):
        await session.execute("COMMIT")
    stage.proxies[-1].wait()
    other = apsw.Connection(str(file))
    other.execute("INSERT INTO t VALUES (1)")
    other.close()
    session = await open_sqlite(place, "main", file)
    assert session.last_outcome is not None
    assert session.last_outcome.state == ("uncertain" if mode == "wal" else "undone")
    assert outside(file) == [1]


@step(identity=lambda db: ())
async def insert(db: Any) -> None:
    await db.execute("INSERT INTO t VALUES (1)")


async def test_a_durable_function_walks_on_after_the_block_that_was_committed(stage: Stage, file: Path) -> None:
    place = mortal(stage, "after", "COMMIT")

    async def program() -> str:
        db = await open_sqlite(place, "main", file)
        async with db.transaction():
            await insert(db)
        return "done"

    first = await play(program)
    assert first.attempt.unwinding.is_restarting
    stage.proxies[-1].wait()
    assert (await play(program, journal=first.journal)).result() == "done"
    assert outside(file) == [1]


async def test_a_commit_does_not_need_the_sessions_folder(stage: Stage, file: Path) -> None:
    session = await opened(stage, file)
    await session.execute("BEGIN IMMEDIATE")
    await session.execute("INSERT INTO t VALUES (1)")
    shutil.rmtree(session.folder)
    await session.execute("COMMIT")
    assert outside(file) == [1]
    stage.proxies[-1].kill()


def test_the_end_of_a_log_is_where_its_last_commit_ends(tmp_path: Path) -> None:
    path = made(tmp_path / "wal.db", "wal")
    assert Log(str(path)).end() == WalPlace()
    connection, log = apsw.Connection(str(path)), Log(str(path))
    connection.execute("INSERT INTO t VALUES (1)")
    one = log.end()
    connection.execute("PRAGMA cache_size = 5")
    connection.execute("BEGIN IMMEDIATE")
    for _ in range(200):
        connection.execute("INSERT INTO t VALUES (randomblob(2000))")
    assert os.path.getsize(f"{path}-wal") > one.end  # spilled, not committed
    assert log.end() == one == Log(str(path)).end()
    connection.execute("COMMIT")
    assert log.end().end > one.end and log.end() == Log(str(path)).end()
    connection.close()


# ── the file ─────────────────────────────────────────────────────────────────────────────────────


def delete(file: Path) -> None:
    file.unlink()


def move(file: Path) -> None:
    file.rename(file.with_name("elsewhere.db"))


def replace(file: Path) -> None:
    made(file.with_name("other.db")).replace(file)


def overwrite(file: Path) -> None:
    other = made(file.with_name("other.db"))
    connection = apsw.Connection(str(other))
    for number in range(100, 110):
        connection.execute("INSERT INTO t VALUES (?)", (number,))
    connection.close()
    file.write_bytes(other.read_bytes())


@pytest.mark.req("R79", "R89")
@pytest.mark.parametrize("mode", ["delete"], indirect=True)
@pytest.mark.parametrize("what", [delete, move, replace, overwrite])
async def test_a_commit_into_a_file_that_is_not_there_is_refused(stage: Stage, file: Path, what: Any) -> None:
    session = await opened(stage, file)
    await session.execute("BEGIN IMMEDIATE")
    await session.execute("INSERT INTO t VALUES (1)")
    what(file)
    with pytest.raises(SessionLost, match=r"moved or deleted|replaced|overwritten"):
        await session.execute("COMMIT")


@pytest.mark.parametrize("mode", ["delete", "wal"], indirect=True)
@pytest.mark.parametrize("what", [delete, move, replace])
async def test_a_session_whose_file_is_another_one_is_not_called_kept(stage: Stage, file: Path, what: Any) -> None:
    session = await opened(stage, file)
    await session.execute("BEGIN IMMEDIATE")
    await session.execute("INSERT INTO t VALUES (1)")
    state = ask(session.folder, {"ask": "state"})
    assert state is not None
    await session.close()
    what(file)

    session = await opened(stage, file)
    assert session.level == "lost"
    assert "moved or deleted" in session.verdict.reason or "replaced" in session.verdict.reason
    assert not session.in_transaction
    until(lambda: not is_alive(state["holder"]))  # nobody has the old file open any more
    await session.execute("CREATE TABLE IF NOT EXISTS t (x)")
    await session.execute("INSERT INTO t VALUES (2)")
    assert outside(file) == [2]
    if what is move:
        assert outside(file.with_name("elsewhere.db")) == []


@pytest.mark.parametrize("mode", ["delete"], indirect=True)
async def test_a_session_that_a_restart_of_the_machine_has_ended_is_lost(tmp_path: Path, file: Path) -> None:
    place = Place(tmp_path / "store" / "perdure.db")
    try:
        async with place.runtime() as rt:
            session = await rt.sqlite("main", file)
            await session.execute("BEGIN IMMEDIATE")
            await session.execute("INSERT INTO t VALUES (1)")
            state = ask(session.folder, {"ask": "state"})
            assert state is not None
        live = Path(place.socket).parent
        place.kill_anchor()
        os.kill(state["holder"], signal.SIGKILL)
        until(lambda: not is_alive(state["holder"]))
        shutil.rmtree(live)  # it is in memory
        [record] = place.home.glob("units/*/unit.json")
        record.write_text(json.dumps({**json.loads(record.read_text()), "boot": "another"}))
        async with place.runtime() as rt:
            session = await rt.sqlite("main", file)
            assert session.level == "lost"
            assert "restarted" in session.verdict.reason
        assert outside(file) == []
    finally:
        place.clear()
