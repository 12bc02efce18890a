"""A statement of a durable function on a kept session happens once per call, wherever the journal was cut."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from perdure import Perdure, pause
from perdure._durable import durable, effect, step
from perdure._runtime.sessions import sqlite
from perdure._runtime.sessions.postgres import open_postgres
from perdure.errors import InvalidInput, ReplayDiverged, StatementUnanswered
from tests.replay.kit import play
from tests.sessions.acts import one
from tests.sessions.kit import Stage, rows
from tests.sessions.replays import cut_anywhere, finished

INSERT = "INSERT INTO t VALUES (%s)"


pytestmark = pytest.mark.usefixtures("table")


@step
async def insert(con: Any, x: int) -> int:
    """The connection is an argument as any other: told from others by the session's name."""
    await con.execute(INSERT, (x,))
    return (await one(con, "SELECT count(*) FROM t"))[0]


@step
async def insert_two(con: Any, x: int) -> None:
    await con.execute(INSERT, (x,))
    async with con.transaction():
        await con.execute(INSERT, (x + 1,))
    with suppress(ZeroDivisionError):
        async with con.transaction():
            await con.execute(INSERT, (99,))
            raise ZeroDivisionError
    async with con.cursor() as cursor:
        await cursor.executemany(INSERT, [(x + 2,), (x + 3,)])
        assert cursor.rowcount == 2


async def connected(stage: Stage, **options: Any) -> Any:
    return await (await stage.open()).connect(**options)


@pytest.mark.req("R79")
@pytest.mark.parametrize("autocommit", [False, True])
async def test_steps_that_were_cut_off_repeat_no_statement(stage: Stage, autocommit: bool) -> None:
    async def program() -> None:
        con = await connected(stage, autocommit=autocommit)
        async with con.transaction():
            assert [await insert(con, x) for x in range(3)] == [1, 2, 3]
            await insert_two(con, 10)
            await pause.input("more?", str)
            await insert(con, 20)
        await con.close()

    await cut_anywhere(program)
    assert rows(stage) == [0, 1, 2, 10, 11, 12, 13, 20]


def _remove_folder_and_kill(stage: Stage) -> None:
    shutil.rmtree(next(stage.folder.glob("pg-*")))
    stage.kill_proxy()


def _kill_and_remove_folder(stage: Stage) -> None:
    stage.kill_proxy()
    shutil.rmtree(next(stage.folder.glob("pg-*")))


def _end_backend(stage: Stage) -> None:
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    stage.outside(f"SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE {others}")
    stage.wait("gone")


@pytest.mark.req("R79")
@pytest.mark.parametrize("happens", [_remove_folder_and_kill, _kill_and_remove_folder, _end_backend])
async def test_no_statement_is_repeated_in_a_transaction_that_outlives_its_notes_or_its_backend(
    stage: Stage, happens: Callable[[Stage], None]
) -> None:
    async def program() -> None:
        session = await open_postgres(stage.place, "main", stage.url, hold="10m", rebuild="auto")
        con = await session.connect()
        async with con.transaction():
            await insert(con, 1)
            await con.execute(INSERT, (2,))
            await insert(con, 3)
            await pause.input("more?", str)
            await insert(con, 4)
        await con.close()

    await cut_anywhere(program, lambda: happens(stage))
    assert rows(stage) == [1, 2, 3, 4]


async def test_statements_in_the_function_itself_are_not_repeated(stage: Stage) -> None:
    async def program() -> list[Any]:
        con = await connected(stage, row_factory=dict_row)
        async with con.transaction():
            for x in range(3):
                await con.execute(INSERT, (x,))
            async with con.cursor() as cursor:
                await cursor.execute("SELECT x, 'a'::text AS y, NULL AS z FROM t ORDER BY x")
                found = await cursor.fetchall()
                assert cursor.rowcount == 3 and cursor.statusmessage == "SELECT 3"
            assert found[2] == {"x": 2, "y": "a", "z": None}
            await pause.input("more?", str)
            await con.execute(INSERT, (8,))
        await con.close()
        return found

    await cut_anywhere(program)
    assert rows(stage) == [0, 1, 2, 8]


async def test_a_statement_that_failed_in_a_block_inside_another_is_not_repeated(stage: Stage) -> None:
    async def program() -> None:
        con = await connected(stage)
        async with con.transaction():
            await con.execute(INSERT, (1,))
            try:
                async with con.transaction():
                    await con.execute(INSERT, (2,))
                    await con.execute("SELECT 1/0")
            except psycopg.errors.DivisionByZero:
                await con.execute(INSERT, (7,))
            await pause.input("more?", str)
            await con.execute(INSERT, (8,))
        await con.close()

    await cut_anywhere(program)
    assert rows(stage) == [1, 7, 8]


@pytest.mark.parametrize("raw", [False, True])
async def test_a_transaction_without_a_block_is_gone_on_with_and_committed_once(stage: Stage, raw: bool) -> None:
    async def program() -> None:
        con = await connected(stage, autocommit=raw)
        if raw:
            await con.execute("BEGIN")
        await insert(con, 1)
        await con.execute(INSERT, (2,))
        await (con.execute("COMMIT") if raw else con.commit())
        if raw:
            await con.execute("BEGIN")
        await con.execute(INSERT, (3,))
        await pause.input("more?", str)
        await insert(con, 4)
        await (con.execute("COMMIT") if raw else con.commit())
        await con.close()

    await cut_anywhere(program)
    assert rows(stage) == [1, 2, 3, 4]


async def test_a_transaction_without_a_block_that_is_gone_is_run_again(stage: Stage) -> None:
    async def program() -> None:
        con = await connected(stage)
        await insert(con, 1)
        await con.execute(INSERT, (2,))
        await pause.input("more?", str)
        await con.execute(INSERT, (3,))
        await con.commit()

    paused = await play(program)
    await (await stage.open()).rollback()
    [path] = paused.attempt.unwinding.questions
    (await finished(program, paused.journal, {path: {"value": "yes"}})).result()
    assert rows(stage) == [1, 2, 3]


async def test_an_effect_in_a_block_that_is_run_again_is_not_repeated(stage: Stage) -> None:
    sent: list[int] = []

    @effect
    async def send(x: int) -> int:
        sent.append(x)
        return x

    async def program() -> None:
        con = await connected(stage)
        async with con.transaction():
            await insert(con, 1)
            await send(1)
            await pause.input("more?", str)
            await insert(con, 2)

    paused = await play(program)
    await (await stage.open()).rollback()
    [path] = paused.attempt.unwinding.questions
    (await finished(program, paused.journal, {path: {"value": "yes"}})).result()
    assert (rows(stage), sent) == ([1, 2], [1])


async def test_another_statement_at_a_known_place_is_a_changed_function(stage: Stage) -> None:
    value = 1

    @step
    async def change(con: Any) -> None:
        await con.execute(INSERT, (value,))

    async def program() -> None:
        con = await connected(stage)
        async with con.transaction():
            await change(con)
            await pause.input("more?", str)

    paused = await play(program)
    value = 2
    again = await play(program, journal=[line for line in paused.journal if "change" not in line[1].path])
    assert isinstance(again.error, ReplayDiverged), again.error
    con = await connected(stage)
    assert await one(con, "SELECT array_agg(x) FROM t") == ([1],)
    await con.close()


async def test_an_answer_that_is_too_large_is_said_and_not_asked_for_again(stage: Stage) -> None:
    @step
    async def read(con: Any) -> int:
        return len(await (await con.execute("SELECT repeat('x', 1000) FROM generate_series(1, 3000)")).fetchall())

    async def program() -> int:
        con = await connected(stage)
        async with con.transaction():
            found: int = await read(con)
            await pause.input("more?", str)
        return found

    paused = await play(program)
    cut = [line for line in paused.journal if "read" not in line[1].path and "input" not in line[1].path]
    with pytest.raises(StatementUnanswered, match="not kept"):
        (await finished(program, cut, {})).result()


@pytest.mark.parametrize("what", ["commit", "COMMIT", "transaction", "copy", "pipeline", "named", "stream"])
async def test_what_cannot_be_done_once_is_refused(stage: Stage, what: str) -> None:
    @step
    async def do(con: Any) -> None:
        match what:
            case "commit":
                await con.commit()
            case "COMMIT":
                await con.execute(" /* now */ commit")
            case "transaction":
                async with con.transaction():
                    pass
            case "copy":
                async with con.cursor() as cursor, cursor.copy("COPY t FROM STDIN"):
                    pass
            case "pipeline":
                async with con.pipeline():
                    pass
            case "named":
                con.cursor("c")
            case "stream":
                async for _ in con.cursor().stream("SELECT 1"):
                    pass

    async def program() -> None:
        await do(await connected(stage))

    with pytest.raises(InvalidInput, match="once per call"):
        (await play(program)).result()
    assert rows(stage) == []


@pytest.mark.req("R79")
async def test_a_statement_goes_out_only_when_the_journal_has_what_it_may_depend_on(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result of a short step is handed out before it is on disk; others see a lone statement at once."""
    known: list[bool] = []
    made = sqlite.call_in_step

    def goes_out(place: Any, *given: Any) -> Any:
        newest = place.attempt.fence.newest
        known.append(newest is None or newest.done)
        return made(place, *given)

    monkeypatch.setattr(sqlite, "call_in_step", goes_out)

    @step
    async def draw() -> int:
        return 4

    @durable(name=f"draws-{tmp_path.name}")
    async def draws() -> None:
        session = await sqlite.open_sqlite(stage.place, "main", tmp_path / "data.db")
        await session.execute("CREATE TABLE t (x)")
        for _ in range(20):
            await session.execute("INSERT INTO t VALUES (?)", (await draw(),))
        await session.end()

    async with Perdure(f"sqlite://{tmp_path}/store/perdure.db") as app:
        await app.run("draws", draws)
    assert len(known) == 21 and all(known)
