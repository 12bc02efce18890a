"""The same for SQLite: a statement of a durable function happens once per call."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure import pause
from perdure._durable import step
from perdure._runtime.sessions import lone_statements
from perdure._runtime.sessions.sqlite import SqliteSession, open_sqlite
from perdure.errors import InvalidInput, ReplayDiverged, SqlFailed
from tests.replay.kit import play
from tests.sessions.kit import Stage
from tests.sessions.replays import Notes, cut_anywhere, finished

INSERT = "INSERT INTO t VALUES (?)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    apsw.Connection(str(tmp_path / "t.db")).execute("CREATE TABLE t (x INTEGER UNIQUE)")
    return tmp_path / "t.db"


def rows(file: Path) -> list[int]:
    return [x for (x,) in apsw.Connection(str(file)).execute("SELECT x FROM t ORDER BY x")]


async def opened(stage: Stage, file: Path) -> SqliteSession:
    return await open_sqlite(stage.place, "books", file)


@step
async def insert(db: Any, x: int) -> int:
    await db.execute(INSERT, (x,))
    return int((await db.fetch("SELECT count(*) FROM t"))[0][0])


@step
async def insert_more(db: Any, x: int) -> None:
    await db.executemany(INSERT, [(x,), (x + 1,)])
    with suppress(SqlFailed):
        await db.execute(INSERT, (x,))
    async with db.transaction():
        await db.execute(INSERT, (x + 2,))
    with suppress(ZeroDivisionError):
        async with db.transaction():
            await db.execute(INSERT, (99,))
            raise ZeroDivisionError


@pytest.mark.req("R79")
@pytest.mark.parametrize("raw", [False, True])
async def test_statements_in_steps_and_in_the_function_itself_happen_once(stage: Stage, file: Path, raw: bool) -> None:
    async def work(db: SqliteSession) -> None:
        assert [await insert(db, x) for x in range(3)] == [1, 2, 3]
        await insert_more(db, 10)
        await db.execute(INSERT, (20,))
        assert (await db.fetch("SELECT max(x) FROM t"))[0] == (20,)
        await pause.input("more?", str)
        await db.execute(INSERT, (21,))

    async def program() -> None:
        db = await opened(stage, file)
        if raw:
            await db.execute("BEGIN IMMEDIATE")
            await work(db)
            await db.execute("COMMIT")
        else:
            async with db.transaction():
                await work(db)
        await db.close()

    await cut_anywhere(program)
    assert rows(file) == [0, 1, 2, 10, 11, 12, 20, 21]


async def test_a_transaction_that_died_with_its_holder_is_run_again(stage: Stage, file: Path) -> None:
    async def program() -> None:
        db = await opened(stage, file)
        async with db.transaction():
            await insert(db, 1)
            await db.execute(INSERT, (2,))
            await pause.input("more?", str)
            await insert(db, 3)
        await db.close()

    paused = await play(program)
    stage.kill_proxy()
    [path] = paused.attempt.unwinding.questions
    (await finished(program, paused.journal, {path: {"value": "yes"}})).result()
    assert rows(file) == [1, 2, 3]


async def test_a_statement_by_itself_happens_once(stage: Stage, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()
    monkeypatch.setattr(lone_statements, "_shelf", lambda *of_task: notes)

    async def program() -> None:
        db = await opened(stage, file)
        await insert(db, 1)
        await db.execute(INSERT, (2,))
        await pause.input("more?", str)
        await db.close()

    await cut_anywhere(program)
    assert rows(file) == [1, 2]


async def test_another_statement_at_a_known_place_is_a_changed_function(stage: Stage, file: Path) -> None:
    value = 1

    @step
    async def change(db: Any) -> None:
        await db.execute(INSERT, (value,))

    async def program() -> None:
        db = await opened(stage, file)
        async with db.transaction():
            await change(db)
            await pause.input("more?", str)

    paused = await play(program)
    value = 2
    cut = [line for line in paused.journal if "change" not in line[1].path and "input" not in line[1].path]
    again = await play(program, journal=cut)
    assert isinstance(again.error, ReplayDiverged), again.error


async def test_ending_a_transaction_inside_a_step_is_refused(stage: Stage, file: Path) -> None:
    @step
    async def end(db: Any) -> None:
        await db.execute("COMMIT")

    async def program() -> None:
        await end(await opened(stage, file))

    with pytest.raises(InvalidInput, match="once per call"):
        (await play(program)).result()
