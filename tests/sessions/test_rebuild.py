"""A session that the server ended is built anew from its recipe: the same, or nothing of its transaction."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from perdure import pause
from perdure._durable import step
from perdure._runtime.sessions.postgres import PostgresSession, open_postgres
from perdure._runtime.sessions.session_processes import ask
from tests.replay.kit import play
from tests.runtime.kit import Place, until
from tests.sessions.acts import one
from tests.sessions.kit import Stage


@pytest.fixture(autouse=True)
def table(stage: Stage) -> None:
    stage.outside("CREATE TABLE t (x int PRIMARY KEY, y int DEFAULT 0)")
    stage.outside("INSERT INTO t VALUES (100)")


async def opened(stage: Stage) -> PostgresSession:
    return await open_postgres(stage.place, "main", stage.url, hold="10m", rebuild="auto")


def lose(stage: Stage) -> None:
    """The server ends the session."""
    state = ask(next(stage.folder.glob("pg-*")), {"ask": "state"})
    assert state is not None
    stage.outside(f"SELECT pg_terminate_backend({state['pid']})")
    stage.wait("gone")


async def shape(con: Any) -> None:
    """What is committed shapes the session."""
    await con.execute("SET statement_timeout = '77s'")
    await con.execute("SET TIME ZONE 'Asia/Tokyo'")
    await con.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    await con.execute("CREATE TEMP TABLE mine (a int)")
    await con.commit()


@pytest.mark.req("R78", "R79")
@pytest.mark.parametrize("proxy_dies", [False, True])
async def test_settings_temp_tables_and_the_open_transaction_come_back(stage: Stage, proxy_dies: bool) -> None:
    session = await opened(stage)
    con = await session.connect()
    await shape(con)
    before = session.backend_pid
    for number in range(8):  # psycopg prepares it on the way
        await con.execute("INSERT INTO t VALUES (%s)", (number,))
    await con.execute("INSERT INTO mine VALUES (1), (2)")
    await con.execute("SELECT x FROM t WHERE x > 50 FOR UPDATE")
    lose(stage)
    if proxy_dies:
        stage.kill_proxy()
    await con.close()

    session = await opened(stage)
    assert session.level == "rebuilt"
    assert "administrator" in session.verdict.reason
    assert session.backend_pid != before
    con = await session.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    assert con.info.parameter_status("TimeZone") == "Asia/Tokyo"
    assert await one(con, "SHOW statement_timeout") == ("77s",)
    assert await one(con, "SHOW transaction_isolation") == ("serializable",)
    assert await one(con, "SELECT count(*) FROM mine") == (2,)
    assert await one(con, "SELECT count(*) FROM t") == (9,)
    assert stage.outside("SELECT count(*) FROM t") == 1  # not before the commit
    for number in range(10, 18):
        await con.execute("INSERT INTO t VALUES (%s)", (number,))
    await con.commit()
    assert stage.outside("SELECT count(*) FROM t") == 17
    await con.close()


@pytest.mark.parametrize(
    "behind_our_back",
    [
        "UPDATE t SET y = 5 WHERE x = 100",  # what was read
        "INSERT INTO t VALUES (1)",  # what was written
        "INSERT INTO t VALUES (101)",  # how many were changed
    ],
)
async def test_it_is_refused_as_a_whole_when_the_base_has_changed(stage: Stage, behind_our_back: str) -> None:
    session = await opened(stage)
    con = await session.connect()
    await shape(con)
    await con.execute("SELECT y FROM t WHERE x = 100")
    await con.execute("INSERT INTO t VALUES (1)")
    await con.execute("UPDATE t SET y = y + 1 WHERE x > 100")
    lose(stage)
    await con.close()
    stage.outside(behind_our_back)
    rows = stage.outside("SELECT count(*) FROM t")

    session = await opened(stage)
    assert session.level == "lost"
    assert "the base has changed" in session.verdict.for_model("main")
    con = await session.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert await one(con, "SELECT count(*) FROM t") == (rows,)
    assert await one(con, "SHOW statement_timeout") == ("77s",)  # the session's shape came back all the same
    await con.close()


async def test_what_was_rolled_back_shapes_nothing_and_what_was_committed_is_not_applied_again(stage: Stage) -> None:
    session = await opened(stage)
    con = await session.connect()
    await con.execute("SET statement_timeout = '77s'")
    await con.rollback()
    await con.execute("INSERT INTO t VALUES (1)")
    await con.commit()
    lose(stage)
    await con.close()
    session = await opened(stage)
    con = await session.connect()
    assert await one(con, "SHOW statement_timeout") == ("0",)
    assert stage.outside("SELECT count(*) FROM t") == 2
    await con.close()


@pytest.mark.parametrize("spoiler", ["copy", "failed", "large"])
async def test_what_cannot_be_built_anew_says_so(stage: Stage, spoiler: str) -> None:
    session = await opened(stage)
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    if spoiler == "copy":
        async with con.cursor() as cursor, cursor.copy("COPY t (x) FROM STDIN") as copy:
            await copy.write_row((2,))
    elif spoiler == "large":
        await con.execute("SELECT %s::text", ("x" * 300_000,))
    else:
        with pytest.raises(psycopg.Error):
            await con.execute("SELECT 1/0")
    lose(stage)
    await con.close()
    session = await opened(stage)
    assert session.level == "lost"
    word = {"copy": "COPY", "failed": "had failed", "large": "too large"}[spoiler]
    assert word in session.verdict.for_model("main")
    assert stage.outside("SELECT count(*) FROM t") == 1


async def test_asyncpgs_statements_are_built_anew_too(stage: Stage) -> None:
    session = await opened(stage)
    con = await asyncpg.connect(session.url)
    await con.execute("BEGIN")
    for number in range(5):
        await con.execute("INSERT INTO t VALUES ($1)", number)
    lose(stage)
    con.terminate()
    session = await opened(stage)
    assert session.level == "rebuilt"
    await session.commit()
    assert stage.outside("SELECT count(*) FROM t") == 6


@step(identity=lambda con, x: x)
async def insert(con: Any, x: int) -> None:
    await con.execute("INSERT INTO t VALUES (%s)", (x,))


async def test_a_durable_function_goes_on_in_the_rebuilt_transaction(stage: Stage) -> None:
    async def program() -> None:
        con = await (await opened(stage)).connect()
        async with con.transaction():
            await insert(con, 1)
            await pause.input("more?", str)
            await insert(con, 2)
        await con.close()

    paused = await play(program)
    lose(stage)
    [path] = paused.attempt.unwinding.questions
    (await play(program, journal=paused.journal, answers={path: {"value": "yes"}})).result()
    assert stage.outside("SELECT count(*) FROM t") == 3


async def test_a_tasks_session_is_built_anew_by_its_runtime(stage: Stage, tmp_path: Path) -> None:
    place = Place(tmp_path / "store" / "perdure.db")
    try:
        async with place.runtime() as rt:
            session = await rt.postgres("main", stage.url, hold="10m", rebuild="auto")
            con = await session.connect()
            await con.execute("INSERT INTO t VALUES (1)")
            state = session.refresh()
            os.kill(state["proxy"], signal.SIGSTOP)
            stage.outside(f"SELECT pg_terminate_backend({state['pid']})")
            os.kill(state["proxy"], signal.SIGKILL)
            con.pgconn.finish()
            until(lambda: place.ask("units")["units"][0]["ended"] is not None)
            session = await rt.postgres("main", stage.url, hold="10m", rebuild="auto")
            assert session.level == "rebuilt"
            await session.commit()
    finally:
        place.clear()
    assert stage.outside("SELECT count(*) FROM t") == 2
