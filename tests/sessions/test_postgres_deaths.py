"""Proxy and client may die together: the same transaction, or a verdict."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from perdure._runtime.sessions.session_processes import ask
from perdure.errors import SessionLost
from perdure.keeper.pgproxy.recovery.notebook import LARGE, Notebook
from perdure.keeper.pgproxy.recovery.parking import SocketParking
from tests.runtime.kit import until
from tests.sessions import acts
from tests.sessions.acts import IDENTITY, one
from tests.sessions.kit import Stage
from tests.support.proxy import proxy_to

pytestmark = pytest.mark.usefixtures("table")


async def test_a_proxy_that_dies_idle_leaves_the_transaction_to_the_next(stage: Stage) -> None:
    session = await stage.open()
    con = await session.connect()
    await con.execute("CREATE TEMP TABLE mine (a int)")
    for number in range(12):
        await con.execute("SELECT %s::int", (number,))
    before = await one(con, IDENTITY)
    stage.kill_proxy()
    with pytest.raises(psycopg.OperationalError):
        await con.execute("SELECT 1")

    con = await session.connect()
    assert await one(con, IDENTITY) == before
    assert await one(con, "SELECT count(*) FROM mine") == (0,)
    for number in range(12):
        await con.execute("SELECT %s::int", (number,))
    await con.rollback()
    await con.close()


@pytest.mark.parametrize(
    "sql, transaction, tag, rows",
    [
        ("INSERT INTO t SELECT 1 FROM pg_sleep(0.1)", "open", "INSERT 0 1", 0),
        ("SELECT 1/0 FROM pg_sleep(0.1)", "failed", None, 0),
        ("SELECT pg_sleep(0.1); COMMIT", "none", "COMMIT", 1),
        ("COPY t FROM STDIN", "failed", None, 0),
        ("SELECT repeat('x', 100000) FROM generate_series(1, 300)", "open", "SELECT 300", 0),
    ],
)
async def test_both_die_while_a_statement_runs(
    stage: Stage, sql: str, transaction: str, tag: str | None, rows: int
) -> None:
    session = await stage.open()
    pid = session.backend_pid
    client = stage.client(acts.send_and_die, "INSERT INTO t VALUES (0)", sql)
    client.heard()
    client.wait()
    until(lambda: stage.outside(f"SELECT query FROM pg_stat_activity WHERE pid = {pid}") == sql)
    stage.kill_proxy()

    session = await stage.open()
    assert session.level == "kept"
    assert session.backend_pid == pid
    assert session.last_outcome is not None
    assert (session.last_outcome.transaction, session.last_outcome.tag) == (transaction, tag)
    assert stage.outside("SELECT count(*) FROM t") == rows
    con = await session.connect()
    await con.rollback()
    assert await one(con, "SELECT 1") == (1,)
    await con.close()


async def test_what_the_dead_proxy_had_not_sent_never_ran(stage: Stage) -> None:
    session = await stage.open()
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    stage.proxies[-1].stop()
    con.pgconn.send_query(b"COMMIT")
    while con.pgconn.flush():
        pass
    stage.kill_proxy()
    await con.close()

    con = await session.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    assert stage.outside("SELECT count(*) FROM t") == 0
    await con.close()


async def test_a_large_message_half_on_its_way_ends_the_session_with_a_verdict(stage: Stage) -> None:
    session = await stage.open()
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    stage.kill_proxy()
    await con.close()
    parking = SocketParking(str(stage.parking))
    kept = parking.take(f"pg:{session.folder.name}.notes")
    parking.close()
    assert kept is not None
    Notebook(kept[0]).phase = LARGE  # as the proxy leaves it while more is to be sent

    with pytest.raises(SessionLost, match="large message"):
        await session.connect()
    again = await stage.open()
    assert again.level == "lost"
    con = await again.connect()
    assert await one(con, "SELECT count(*) FROM t") == (0,)
    await con.close()


async def test_a_session_that_was_parked_nowhere_is_lost_with_its_proxy(stage: Stage) -> None:
    await stage.open()
    stage.kill_proxy()
    stage.kill_parking()
    session = await stage.open()
    assert session.level == "lost"
    assert "its proxy is gone" in session.verdict.reason


async def test_a_broken_network_is_lost_with_the_reason_and_the_server_waited_for(stage: Stage) -> None:
    with proxy_to(stage.url) as way:
        session = await stage.open(url=way.url)
        con = await session.connect()
        await con.execute("INSERT INTO t VALUES (1)")
        way.cut()
        stage.wait("gone")
        with pytest.raises(psycopg.OperationalError):
            await con.execute("SELECT 1")
        way.refuse_next(3)
        again = await stage.open(url=way.url)
        assert again.level == "lost"
        assert "closed the connection" in again.verdict.reason or "broke" in again.verdict.reason
        con = await again.connect()
        assert await one(con, "SELECT count(*) FROM t") == (0,)
        await con.close()
        await again.end()


async def test_ending_a_session_leaves_nothing(stage: Stage) -> None:
    session = await stage.open()
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    pid = con.info.backend_pid
    await session.end()
    stage.proxies[-1].wait()
    await con.close()
    count = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"
    while stage.outside(count):
        await asyncio.sleep(0)
    assert ask(session.folder, {"ask": "state"}) is None
    assert (await stage.open()).backend_pid != pid
