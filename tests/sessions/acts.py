"""What clients do before they are killed."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from perdure._runtime.sessions.postgres import PostgresSession
from tests.support.processes import Link, die, say

IDENTITY = "SELECT pg_backend_pid(), txid_current()"


async def one(connection: Any, sql: str) -> Any:
    return await (await connection.execute(sql)).fetchone()


async def leave_everything_open(link: Link, session: PostgresSession) -> None:
    connection = await session.connect()
    await connection.execute("SET statement_timeout = '77s'")
    await connection.execute("SET TIME ZONE 'Asia/Tokyo'")
    await connection.execute("CREATE TEMP TABLE mine (a int)")
    await connection.execute("INSERT INTO mine VALUES (7)")
    await connection.execute("INSERT INTO t VALUES (1)")
    await connection.execute("SELECT pg_advisory_lock(42)")
    await connection.execute("DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 100)")
    await connection.execute("FETCH 10 FROM c")
    await connection.execute("PREPARE byhand AS SELECT 5")
    for number in range(12):  # psycopg prepares it as _pg3_0
        await connection.execute("SELECT %s::int", (number,))
    say(link, await one(connection, IDENTITY))
    await asyncio.Event().wait()


async def leave_open_by_asyncpg(link: Link, session: PostgresSession) -> None:
    connection = await asyncpg.connect(session.url)
    await connection.execute("BEGIN")
    await connection.execute("INSERT INTO t VALUES (2)")
    assert await connection.fetchval("SELECT $1::int + 1", 3) == 4
    say(link, tuple(await connection.fetchrow(IDENTITY)))
    await asyncio.Event().wait()


async def send_and_die(link: Link, session: PostgresSession, before: str, sql: str) -> None:
    """Ask for something, and die before the answer."""
    connection = await session.connect()
    if before:
        await connection.execute(before)
    connection.pgconn.send_query(sql.encode())
    while connection.pgconn.flush():
        pass
    say(link, None)
    die()


async def fail(link: Link, session: PostgresSession) -> None:
    connection = await session.connect()
    await connection.execute("INSERT INTO t VALUES (1)")
    try:
        await connection.execute("SELECT 1/0")
    except Exception:
        say(link, None)
    await asyncio.Event().wait()


async def begin_copy(link: Link, session: PostgresSession, extended: bool) -> None:
    connection = await session.connect()
    await connection.execute("INSERT INTO t VALUES (1)")
    sql = "COPY t FROM STDIN"
    if extended:
        connection.pgconn.send_query_params(sql.encode(), [])
        while connection.pgconn.flush():
            pass
        while connection.pgconn.is_busy():
            connection.pgconn.consume_input()
        assert connection.pgconn.get_result() is not None
        connection.pgconn.put_copy_data(b"61\n62\n")
        while connection.pgconn.flush():
            pass
        say(link, None)
        die()
    async with connection.cursor() as cursor, cursor.copy(sql) as copy:
        await copy.write(b"61\n62\n")
        while connection.pgconn.flush():
            pass
        say(link, None)
        die()


async def read_nothing(link: Link, session: PostgresSession, megabytes: int) -> None:
    """Ask for a large result, and never read it."""
    connection = await session.connect()
    await connection.execute("INSERT INTO t VALUES (1)")
    connection.pgconn.send_query(f"SELECT repeat('x', 1000000) FROM generate_series(1, {megabytes})".encode())
    while connection.pgconn.flush():
        pass
    say(link, None)
    await asyncio.Event().wait()
