"""A pause or a death inside `async with con.transaction():` leaves the transaction to the next attempt."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from perdure import Perdure, pause
from perdure._durable import durable, step
from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.unwinding import Paused
from perdure._runtime.sessions.postgres import open_postgres
from perdure._runtime.sessions.postgres_connection import KeptConnection
from perdure._runtime.sessions.session_processes import SessionPlace
from tests.replay.kit import play
from tests.sessions.acts import one
from tests.sessions.kit import Stage, rows
from tests.sessions.replays import finished
from tests.support.processes import Link, die

seen: list[Any] = []


@pytest.fixture(autouse=True)
def _table(stage: Stage) -> None:
    seen.clear()
    stage.outside("CREATE TABLE t (x int)")


@step(identity=lambda con, x: x)
async def insert(con: Any, x: int) -> None:
    await con.execute("INSERT INTO t VALUES (%s)", (x,))
    seen.append((x, (await one(con, "SELECT txid_current()"))[0]))


async def answered(program: Callable[[], Any]) -> Any:
    """Pause, then go on in another attempt with the answer."""
    paused = await play(program)
    assert isinstance(paused.error, Paused), paused.error
    [path] = paused.attempt.unwinding.questions
    return await play(program, journal=paused.journal, answers={path: {"value": "yes"}})


@pytest.mark.req("R79")
@pytest.mark.parametrize("autocommit", [False, True])
async def test_the_next_attempt_is_in_the_same_transaction(stage: Stage, autocommit: bool) -> None:
    async def program() -> str:
        con = await (await stage.open()).connect(autocommit=autocommit)
        async with con.transaction():
            await insert(con, 1)
            await pause.input("more?", str)
            assert rows(stage) == []
            await insert(con, 2)
        await con.close()
        return "done"

    done = await answered(program)
    assert done.result() == "done"
    assert [x for x, _ in seen] == [1, 2]
    assert seen[0][1] == seen[1][1]
    assert rows(stage) == [1, 2]


async def test_a_connection_block_around_it_neither_commits_nor_rolls_back(stage: Stage) -> None:
    async def program() -> None:
        async with await (await stage.open()).connect() as con:
            await insert(con, 1)
            await pause.input("more?", str)
            await insert(con, 2)

    (await answered(program)).result()
    assert seen[0][1] == seen[1][1]
    assert rows(stage) == [1, 2]


async def test_blocks_that_have_ended_are_walked_through(stage: Stage) -> None:
    async def program() -> None:
        con = await (await stage.open()).connect()
        async with con.transaction():
            await insert(con, 1)
        try:
            async with con.transaction():
                await insert(con, 2)
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        async with con.transaction():
            await insert(con, 3)
            await pause.input("more?", str)
            assert rows(stage) == [1]
        async with con.transaction():
            await insert(con, 4)
        await con.close()

    (await answered(program)).result()
    assert [x for x, _ in seen] == [1, 2, 3, 4]
    assert rows(stage) == [1, 3, 4]


async def test_a_savepoint_begun_before_the_pause_rolls_back_what_came_before_it(stage: Stage) -> None:
    async def program() -> None:
        con = await (await stage.open()).connect()
        async with con.transaction():
            await insert(con, 1)
            async with con.transaction():
                await insert(con, 2)
            try:
                async with con.transaction():
                    await insert(con, 3)
                    await pause.input("more?", str)
                    raise ZeroDivisionError
            except ZeroDivisionError:
                await insert(con, 4)
        await con.close()

    (await answered(program)).result()
    assert rows(stage) == [1, 2, 4]


async def test_a_block_whose_hold_limit_passed_is_run_again_from_its_beginning(stage: Stage) -> None:
    async def program() -> None:
        session = await stage.open()
        con = await session.connect()
        async with con.transaction():
            await insert(con, 1)
            await pause.input("more?", str)
            await insert(con, 2)

    paused = await play(program)
    stage.wait("alone")
    await (await stage.open()).rollback()  # as the limit does
    [path] = paused.attempt.unwinding.questions
    (await finished(program, paused.journal, {path: {"value": "yes"}})).result()
    assert [x for x, _ in seen] == [1, 1, 2]
    assert rows(stage) == [1, 2]


async def test_only_the_block_of_a_lost_session_is_run_again(stage: Stage) -> None:
    async def program() -> None:
        con = await (await stage.open()).connect()
        async with con.transaction():
            await insert(con, 1)
        async with con.transaction():
            await insert(con, 2)
            await pause.input("more?", str)

    paused = await play(program)
    await (await stage.open()).end()
    [path] = paused.attempt.unwinding.questions
    (await finished(program, paused.journal, {path: {"value": "yes"}})).result()
    assert [x for x, _ in seen] == [1, 2, 2]
    assert rows(stage) == [1, 2]


async def test_a_block_the_journal_does_not_know_is_begun_anew(stage: Stage) -> None:
    """The attempt died before anything in the block was recorded."""

    async def program(dies: bool) -> None:
        con = await (await stage.open()).connect()
        async with con.transaction():
            await insert(con, 1)
            if dies:
                await pause.input("more?", str)
        await con.close()

    await play(lambda: program(True))
    (await play(lambda: program(False), journal=[])).result()
    assert rows(stage) == [1]


async def test_other_drivers_are_cut_off_before_they_can_roll_back(stage: Stage) -> None:
    import asyncpg

    async def program() -> str:
        session = await stage.open()
        con = await asyncpg.connect(session.url)
        if not con.is_in_transaction():
            await con.execute("BEGIN")
            await con.execute("INSERT INTO t VALUES (1)")
        try:
            answer = await pause.input("more?", str)
        except BaseException:
            await con.execute("ROLLBACK")
            raise
        await con.execute("COMMIT")
        await con.close()
        return answer

    assert (await answered(program)).result() == "yes"
    assert rows(stage) == [1]


async def test_an_attempt_that_is_cancelled_leaves_the_transaction_alone(stage: Stage) -> None:
    inside = asyncio.Event()

    async def program() -> None:
        con = await (await stage.open()).connect()
        async with con.transaction():
            await insert(con, 1)
            inside.set()
            await asyncio.Event().wait()

    attempt = asyncio.ensure_future(play(program))
    await inside.wait()
    attempt.cancel()
    assert isinstance((await attempt).error, asyncio.CancelledError)
    con = await stage.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    await con.close()


# ── killed for real ──────────────────────────────────────────────────────────────────────────────

where: dict[str, Any] = {}


@step(flush=False)
async def insert_unwaited(con: Any, x: int) -> None:
    await con.execute("INSERT INTO t VALUES (%s)", (x,))


@durable(name="sessions.killed-at-commit")
async def killed_at_commit() -> int:
    session = await open_postgres(where["place"], "main", where["url"], hold="10m")
    con = await session.connect()
    async with con.transaction():
        await insert(con, 1)
        await insert(con, 2)
        where["disk"].clear()
        await insert_unwaited(con, 3)
    await con.close()
    return 3


async def run_and_die_after_commit(link: Link, stage_folder: str, parking: str, url: str, store: str) -> None:
    """The disk is slow, and quick only for somebody who waits for it."""
    disk = threading.Event()
    where.update(place=SessionPlace(Path(stage_folder), Path(parking)), url=url, disk=disk)
    commit, flush = KeptConnection.commit_block, Attempt.flush

    async def wait_for_disk(self: Attempt) -> None:
        disk.set()
        await flush(self)

    async def commit_and_die(self: KeptConnection, number: int) -> None:
        await commit(self, number)
        die()

    setattr(KeptConnection, "commit_block", commit_and_die)  # noqa: B010
    setattr(Attempt, "flush", wait_for_disk)  # noqa: B010
    disk.set()
    async with Perdure(store) as app:
        engine = app._store.engine
        write = engine.commit

        def write_slowly(batch: Any) -> Any:
            disk.wait()
            return write(batch)

        setattr(engine, "commit", write_slowly)  # noqa: B010
        await app.run("task", killed_at_commit)


async def test_what_was_done_in_a_block_is_on_record_before_it_commits(stage: Stage, tmp_path: Path) -> None:
    """Else the next attempt would find a block that has ended, and steps in it that it does not know."""
    await stage.open()
    store = f"sqlite://{tmp_path}/perdure.db"
    arguments = (str(stage.folder), str(stage.parking), stage.url, store)
    child = stage.children.start(run_and_die_after_commit, *arguments)
    assert child.wait() == -9
    assert rows(stage) == [1, 2, 3]
    where.update(place=stage.place, url=stage.url, disk=threading.Event())
    async with Perdure(store) as app:
        assert await app.run("task", killed_at_commit) == 3
    assert rows(stage) == [1, 2, 3]
    assert seen == []
