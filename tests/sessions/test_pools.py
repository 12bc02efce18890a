"""Pools end transactions that they did not begin. A kept one is guarded against that."""

from __future__ import annotations

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.pool import NullPool

from perdure._runtime.sessions.postgres import PostgresSession
from tests.sessions.acts import one
from tests.sessions.kit import Stage


async def leave_open(stage: Stage) -> PostgresSession:
    stage.outside("CREATE TABLE t (x int)")
    session = await stage.open()
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    await con.close()
    stage.wait("alone")
    return session


async def still_open(stage: Stage) -> None:
    con = await stage.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    assert await one(con, "SELECT count(*) FROM t") == (1,)
    assert stage.outside("SELECT count(*) FROM t") == 0
    await con.close()


async def test_an_sqlalchemy_engine_on_the_url_is_told_and_rolls_nothing_back(stage: Stage) -> None:
    session = await leave_open(stage)
    engine = sqlalchemy.create_engine(session.url.replace("postgresql://", "postgresql+psycopg://"))
    with pytest.raises(sqlalchemy.exc.DBAPIError, match="is kept"), engine.connect() as connection:
        connection.execute(sqlalchemy.text("SELECT 1"))
    engine.dispose()
    await still_open(stage)


async def test_an_asyncpg_pool_resets_nothing(stage: Stage) -> None:
    session = await leave_open(stage)
    pool = await asyncpg.create_pool(session.url, min_size=1, max_size=1)
    with pytest.raises(asyncpg.PostgresError, match="is kept"):
        async with pool.acquire() as connection:
            assert await connection.fetchval("SELECT count(*) FROM t") == 1
    pool.terminate()
    await still_open(stage)


async def test_a_client_may_end_what_it_began_itself(stage: Stage) -> None:
    stage.outside("CREATE TABLE t (x int)")
    session = await stage.open()
    con = await asyncpg.connect(session.url)
    async with con.transaction():
        await con.execute("INSERT INTO t VALUES (1)")
    undone = con.transaction()
    await undone.start()
    await con.execute("INSERT INTO t VALUES (2)")
    await undone.rollback()
    await con.close()
    assert stage.outside("SELECT count(*) FROM t") == 1


async def test_the_session_itself_ends_it(stage: Stage) -> None:
    session = await leave_open(stage)
    await session.rollback()
    con = await session.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    await con.execute("INSERT INTO t VALUES (1)")
    await con.close()
    stage.wait("alone")
    await session.commit()
    assert stage.outside("SELECT count(*) FROM t") == 1


async def test_sqlalchemy_goes_on_in_the_transaction_when_it_is_told_not_to_end_it(stage: Stage) -> None:
    """As docs/guide/sessions.md shows."""
    session = await leave_open(stage)
    engine = sqlalchemy.create_engine(
        session.url.replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool, pool_reset_on_return=None
    )
    engine.dialect.do_rollback = engine.dialect.do_commit = lambda _: None
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.text("SELECT count(*) FROM t")).scalar() == 1
    await still_open(stage)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("INSERT INTO t VALUES (2)"))
    await session.commit()
    assert stage.outside("SELECT count(*) FROM t") == 2
