"""The next client goes on in the same transaction, whatever the one before was doing when it died."""

from __future__ import annotations

import asyncio
import socket
import struct
from datetime import timedelta

import asyncpg
import psycopg
import pytest

from perdure._ground.clock import MovableClock
from perdure._runtime.sessions.session_processes import ask
from perdure.errors import Conflict, InvalidInput, SessionLost, SessionUnavailable
from tests.sessions import acts
from tests.sessions.acts import IDENTITY, one
from tests.sessions.kit import Stage

pytestmark = pytest.mark.usefixtures("table")


@pytest.mark.req("R78", "R79")
async def test_the_next_client_has_all_that_the_dead_one_had(stage: Stage) -> None:
    await stage.open()
    client = stage.client(acts.leave_everything_open)
    before = client.heard()
    client.kill()

    session = await stage.open()
    assert session.level == "kept"
    assert "the transaction is open" in session.verdict.same
    con = await session.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    assert con.info.parameter_status("TimeZone") == "Asia/Tokyo"
    assert con.info.backend_pid == before[0]
    assert await one(con, IDENTITY) == before
    assert await one(con, "SELECT a FROM mine") == (7,)
    assert await one(con, "SHOW statement_timeout") == ("77s",)
    assert await one(con, "FETCH 1 FROM c") == (11,)
    assert await one(con, "EXECUTE byhand") == (5,)
    for number in range(12):  # the same names as the dead client's
        assert await (await con.execute("SELECT %s::int", (number,))).fetchone() == (number,)
    assert stage.outside("SELECT pg_try_advisory_lock(42)") is False
    assert stage.outside("SELECT count(*) FROM t") == 0
    await con.commit()
    assert stage.outside("SELECT count(*) FROM t") == 1
    await con.close()


async def test_asyncpg_goes_on_too(stage: Stage) -> None:
    await stage.open()
    client = stage.client(acts.leave_open_by_asyncpg)
    before = client.heard()
    client.kill()

    session = await stage.open()
    con = await asyncpg.connect(session.url)
    assert con.is_in_transaction()
    assert tuple(await con.fetchrow(IDENTITY)) == before
    assert await con.fetchval("SELECT $1::int + 1", 3) == 4
    await con.execute("COMMIT")
    assert stage.outside("SELECT count(*) FROM t") == 1
    await con.close()


@pytest.mark.parametrize(
    "sql, tag, transaction, rows",
    [
        ("INSERT INTO t SELECT generate_series(1, 3), pg_sleep(0.05) IS NULL", None, "failed", 0),
        ("INSERT INTO t SELECT generate_series(1, 3) FROM pg_sleep(0.05)", "INSERT 0 3", "open", 0),
        ("COMMIT", "COMMIT", "none", 1),
    ],
)
async def test_a_statement_in_flight_ends_and_its_outcome_is_kept(
    stage: Stage, sql: str, tag: str | None, transaction: str, rows: int
) -> None:
    await stage.open()
    client = stage.client(acts.send_and_die, "INSERT INTO t VALUES (0)", sql)
    client.heard()
    client.wait()
    stage.wait("alone")

    session = await stage.open()
    outcome = session.last_outcome
    assert outcome is not None
    assert (outcome.state, outcome.statement, outcome.tag, outcome.transaction) == ("done", sql, tag, transaction)
    assert (outcome.error is not None) == (transaction == "failed")
    assert stage.outside("SELECT count(*) FROM t") == rows
    assert sql[:20] in session.verdict.for_model("main")


async def test_a_failed_transaction_is_told_as_failed(stage: Stage) -> None:
    await stage.open()
    client = stage.client(acts.fail)
    client.heard()
    client.kill()

    session = await stage.open()
    con = await session.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
    assert any("roll back" in option for option in session.verdict.options)
    await con.rollback()
    assert await one(con, "SELECT 1") == (1,)
    await con.close()


@pytest.mark.parametrize("extended", [False, True])
async def test_a_copy_that_is_cut_brings_in_nothing(stage: Stage, extended: bool) -> None:
    await stage.open()
    client = stage.client(acts.begin_copy, extended)
    client.heard()
    client.wait()
    state = stage.wait("alone")
    assert state["transaction"] == "failed"
    con = await stage.connect()
    await con.rollback()
    assert await one(con, "SELECT count(*) FROM t") == (0,)
    await con.close()


class Raw:
    """A client that says what it likes."""

    def __init__(self, stage: Stage, user: str = "postgres", database: str = "") -> None:
        folder = next(stage.folder.glob("pg-*"))
        database = database or psycopg.conninfo.conninfo_to_dict(stage.url)["dbname"]
        self.link = socket.socket(socket.AF_UNIX)
        self.link.connect(str(folder / ".s.PGSQL.5432"))
        body = struct.pack("!I", 196608) + f"user\0{user}\0database\0{database}\0\0".encode()
        self.link.sendall(struct.pack("!I", len(body) + 4) + body)
        self.greeting = self.link.recv(65536)

    def say(self, kind: bytes, body: bytes = b"", cut: int = 0) -> None:
        data = kind + struct.pack("!I", len(body) + 4) + body
        self.link.sendall(data[: len(data) - cut])

    def hear(self, end: bytes = b"Z") -> bytes:
        data = b""
        while data[-6:-5] != end:
            data += self.link.recv(65536)
        return data


async def test_half_a_message_and_an_unsent_batch_never_run(stage: Stage) -> None:
    await stage.open()
    for half in (b"", b"half"):
        raw = Raw(stage)
        raw.say(b"P", b"\0INSERT INTO t VALUES (5)\0\0\0")
        raw.say(b"B", b"\0\0\0\0\0\0\0\0")
        raw.say(b"E", b"\0\0\0\0\0")
        if half:
            raw.say(b"Q", b"INSERT INTO t VALUES (6)\0", cut=3)
        raw.link.close()
        assert stage.wait("alone")["dropped"]
    assert stage.outside("SELECT count(*) FROM t") == 0


async def test_what_was_flushed_and_never_synced_is_not_committed(stage: Stage) -> None:
    await stage.open()
    raw = Raw(stage)
    raw.say(b"P", b"\0INSERT INTO t VALUES (5)\0\0\0")
    raw.say(b"B", b"\0\0\0\0\0\0\0\0")
    raw.say(b"E", b"\0\0\0\0\0")
    raw.say(b"H")
    while b"INSERT 0 1" not in raw.link.recv(65536):
        pass
    raw.link.close()
    assert stage.wait("alone")["transaction"] == "none"
    assert stage.outside("SELECT count(*) FROM t") == 0


async def test_what_was_flushed_inside_a_transaction_stays_in_it(stage: Stage) -> None:
    await stage.open()
    raw = Raw(stage)
    raw.say(b"Q", b"BEGIN\0")
    raw.hear()
    raw.say(b"P", b"\0INSERT INTO t VALUES (5)\0\0\0")
    raw.say(b"B", b"\0\0\0\0\0\0\0\0")
    raw.say(b"E", b"\0\0\0\0\0")
    raw.say(b"H")
    raw.link.recv(5)
    raw.link.close()
    assert stage.wait("alone")["transaction"] == "open"
    con = await stage.connect()
    await con.commit()
    assert stage.outside("SELECT count(*) FROM t") == 1
    await con.close()


async def test_a_transaction_ends_after_a_pipeline(stage: Stage) -> None:
    """psycopg sends a Flush behind the Sync of a pipeline."""
    session = await stage.open()
    con = await session.connect()
    async with con.pipeline():
        await con.execute("CREATE TABLE piped (a int)")
        await con.execute("INSERT INTO piped VALUES (%s)", (1,))
    await con.execute("INSERT INTO piped VALUES (2)")
    await con.commit()
    assert stage.outside("SELECT sum(a) FROM piped") == 3


async def test_a_newer_client_fences_the_older(stage: Stage) -> None:
    session = await stage.open()
    older = await session.connect()
    await older.execute("INSERT INTO t VALUES (1)")
    newer = await session.connect()
    with pytest.raises(psycopg.OperationalError, match="newer client"):
        await older.execute("INSERT INTO t VALUES (2)")
    assert await one(newer, "SELECT count(*) FROM t") == (1,)
    await newer.rollback()
    await newer.close()


async def test_a_cancel_reaches_the_server_and_only_from_the_present_client(stage: Stage) -> None:
    session = await stage.open()
    older = await session.connect()
    stale = older.pgconn.get_cancel()
    con = await session.connect(autocommit=True)
    running = asyncio.ensure_future(con.execute("SELECT pg_sleep(600)"))
    while not ask(session.folder, {"ask": "state"})["busy"]:  # type: ignore[index]
        await asyncio.sleep(0)
    stale.cancel()
    while stage.outside("SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'") != 1:
        pass
    assert not running.done()
    await con.cancel_safe()
    with pytest.raises(psycopg.errors.QueryCanceled):
        await running
    await con.close()


async def test_the_hold_limit_rolls_back_and_is_told(stage: Stage, clock: MovableClock) -> None:
    stage.env = {"PERDURE_TEST_CLOCK": str(clock.path)}
    session = await stage.open(hold="10m")
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    clock.advance(minutes=11)  # while a client is there, nothing is rolled back
    await con.execute("INSERT INTO t VALUES (2)")
    await con.close()
    stage.wait("alone")
    clock.advance(minutes=9)
    assert stage.wait("quiet")["transaction"] == "open"
    clock.advance(minutes=2)
    stage.wait("none")
    assert stage.outside("SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass") == 0

    session = await stage.open()
    assert session.level == "kept"
    assert any("hold limit" in told for told in session.verdict.since_you_left)
    con = await session.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    await con.close()


@pytest.mark.parametrize("setting", ["idle_in_transaction_session_timeout", "transaction_timeout"])
async def test_the_hold_limit_is_capped_by_the_server(stage: Stage, clock: MovableClock, setting: str) -> None:
    stage.env = {"PERDURE_TEST_CLOCK": str(clock.path)}
    session = await stage.open(hold="10m", url=f"{stage.url}&options=-c%20{setting}%3D60s")
    state = ask(session.folder, {"ask": "state"})
    assert state is not None
    assert (state["hold_seconds"], state["hold_by"]) == (60, setting)
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    await con.close()
    stage.wait("alone")
    clock.advance(seconds=56)
    assert any(setting in told for told in stage.wait("none")["lost_parts"])


async def test_a_backend_that_is_ended_is_lost_with_the_reason(stage: Stage) -> None:
    session = await stage.open()
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    stage.outside(f"SELECT pg_terminate_backend({con.info.backend_pid})")
    with pytest.raises(psycopg.OperationalError, match="administrator"):
        await con.execute("SELECT 1")
    with pytest.raises(SessionLost, match="administrator"):
        await session.connect()

    again = await stage.open()
    assert again.level == "lost"
    assert "administrator" in again.verdict.reason
    con = await again.connect()
    assert await one(con, "SELECT count(*) FROM t") == (0,)
    await con.close()


async def test_a_large_result_that_nobody_reads_fills_no_memory(stage: Stage) -> None:
    await stage.open()
    client = stage.client(acts.read_nothing, 300)
    client.heard()
    stopped = stage.proxies[-1].pid
    client.kill()
    state = stage.wait("alone")
    assert state["discarded"] > 250_000_000
    assert state["outcome"]["rows"] == 300
    with open(f"/proc/{stopped}/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    assert peak < 120_000  # kB, most of it the warm process it was forked from
    assert state["transaction"] == "open"


async def test_notifications_wait_for_the_next_client(stage: Stage) -> None:
    session = await stage.open()
    con = await session.connect(autocommit=True)
    await con.execute("LISTEN news")
    await con.close()
    stage.wait("alone")
    stage.outside("NOTIFY news, 'while you were out'")
    con = await session.connect(autocommit=True)
    await con.execute("SELECT 1")
    async for notify in con.notifies(stop_after=1):
        assert notify.payload == "while you were out"
    await con.close()


async def test_other_databases_and_other_users_are_refused(stage: Stage) -> None:
    await stage.open()
    for raw in (Raw(stage, database="template1"), Raw(stage, user="somebody")):
        raw.link.close()
        assert b"this session is postgres's" in raw.greeting


async def test_what_makes_no_sense_is_refused_before_anything_is_started(stage: Stage) -> None:
    for hold in ("", "soon", "0s", timedelta(0), timedelta(days=90)):
        with pytest.raises(InvalidInput):
            await stage.open(hold=hold)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="mysql sessions are not kept"):
        await stage.open(url="mysql://user@host/db")
    with pytest.raises(InvalidInput, match="not a PostgreSQL address"):
        await stage.open(url="postgresql://host/db?nonsense=1")
    with pytest.raises(SessionUnavailable, match="does not exist"):
        await stage.open(url=stage.url.replace("/t_", "/no_"))


async def test_there_is_one_proxy_for_a_session(stage: Stage) -> None:
    first = await stage.open()
    answer = stage.place.launch("", {"name": "x", "folder": str(first.folder), "hold": 1}, first.folder)
    assert answer["kind"] == "twice"
    assert (await stage.open()).backend_pid == first.backend_pid


async def test_a_name_is_one_session_and_its_hold_limit_is_the_last_one_asked_for(stage: Stage) -> None:
    session = await stage.open(hold="10m")
    with pytest.raises(Conflict, match="is open as postgres@"):
        await stage.open(url=stage.url.replace("postgresql://postgres@", "postgresql://somebody@"))
    await stage.open(hold="2h")
    assert session.refresh()["hold_seconds"] == 7200


async def test_visitors_that_say_nothing_keep_nobody_out(stage: Stage) -> None:
    session = await stage.open()
    silent = [socket.socket(socket.AF_UNIX) for _ in range(70)]
    for link in silent:
        link.connect(str(session.folder / ".s.PGSQL.5432"))
    con = await session.connect()
    assert await one(con, "SELECT 1") == (1,)
    await con.close()
    for link in silent:
        link.close()


async def test_a_session_without_a_keeper_ends_when_nobody_comes_any_more(stage: Stage, clock: MovableClock) -> None:
    stage.env = {"PERDURE_TEST_CLOCK": str(clock.path)}
    session = await stage.open(hold="10m")
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    clock.advance(minutes=30)
    await con.execute("INSERT INTO t VALUES (2)")
    await con.close()
    stage.wait("alone")
    clock.advance(minutes=10.5)
    stage.wait("none")
    clock.advance(minutes=61)
    assert stage.proxies[-1].wait() == 0
