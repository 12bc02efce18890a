"""A COMMIT whose answer is lost: how it ended is asked of the server, and it is never done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from perdure._durable import step
from perdure._runtime.sessions.postgres import PostgresSession, open_postgres
from perdure._runtime.sessions.session_processes import ask
from perdure.errors import SqlFailed
from perdure.keeper.pgproxy.protocol import transaction_ends as endings
from perdure.keeper.pgproxy.protocol import wire
from perdure.keeper.pgproxy.recovery.postmortem import judge
from perdure.keeper.pgproxy.recovery.trace import Left, Server, Trace
from perdure.keeper.pgproxy.recovery.witness import CommitWitness
from perdure.keeper.pgproxy.session.session import Session
from tests.replay.kit import play
from tests.runtime.kit import until
from tests.sessions.acts import send_and_die
from tests.sessions.kit import Stage
from tests.support.proxy import Proxy, proxy_to

GATE = 7  # an advisory lock that a COMMIT waits for

_SLOW = f"""
CREATE TABLE account (id int PRIMARY KEY, balance int);
INSERT INTO account VALUES (1, 100);
CREATE FUNCTION wait_for_the_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_xact_lock({GATE}); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON account DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION wait_for_the_gate();
"""
TAKE_TEN = "UPDATE account SET balance = balance - 10"
BALANCE = "SELECT balance FROM account"


@pytest.fixture(autouse=True)
def account(stage: Stage) -> None:
    stage.outside(_SLOW)


@pytest.fixture
def way(stage: Stage) -> Iterator[Proxy]:
    with proxy_to(stage.url) as made:
        yield made


class Gate:
    """Holds every COMMIT of an UPDATE back, from another connection."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("SELECT pg_advisory_lock(%s)", (GATE,))

    def has_one_waiting(self) -> bool:
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        return self._connection.execute(waits).fetchone() != (0,)

    def open(self) -> None:
        self._connection.close()


@pytest.fixture
def gate(stage: Stage) -> Iterator[Gate]:
    made = Gate(stage.url)
    yield made
    made.open()


async def opened(stage: Stage, rebuild: Any = "never", url: str = "") -> PostgresSession:
    return await open_postgres(stage.place, "main", url or stage.url, hold="10m", rebuild=rebuild)


def kill_all(stage: Stage) -> None:
    """The proxy, and what its connection is parked in."""
    stage.kill_proxy()
    stage.kill_parking()


def is_alive(stage: Stage, pid: int) -> bool:
    return bool(stage.outside(f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"))


@pytest.mark.req("R79")
@pytest.mark.parametrize("rebuild", ["never", "auto"])
@pytest.mark.parametrize("commit", ["COMMIT", "END", "/* done */ COMMIT WORK"])
async def test_a_commit_whose_answer_was_lost_with_all_that_held_it_is_told_and_not_done_again(
    stage: Stage, gate: Gate, rebuild: str, commit: str
) -> None:
    session = await opened(stage, rebuild)
    client = stage.client(send_and_die, TAKE_TEN, commit)
    client.heard()
    client.wait()
    until(gate.has_one_waiting)
    kill_all(stage)
    gate.open()

    session = await opened(stage, rebuild)
    assert stage.outside(BALANCE) == 90
    assert session.level == "lost"  # the session is, its transaction is not
    assert "its last transaction was committed" in session.verdict.for_model("main")
    assert session.last_outcome is not None and session.last_outcome.tag == "COMMIT"
    con = await session.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    await con.commit()
    await con.close()
    assert stage.outside(BALANCE) == 90


@pytest.mark.req("R79")
@pytest.mark.parametrize("rebuild", ["never", "auto"])
async def test_without_the_sessions_notes_a_commit_is_uncertain_and_not_done_again(
    stage: Stage, gate: Gate, rebuild: str
) -> None:
    session = await opened(stage, rebuild)
    client = stage.client(send_and_die, TAKE_TEN, "COMMIT")
    client.heard()
    client.wait()
    until(gate.has_one_waiting)
    kill_all(stage)
    (session.folder / "trace").unlink()
    gate.open()
    until(lambda: stage.outside(BALANCE) == 90)

    session = await opened(stage, rebuild)
    assert session.level == "lost"
    assert "whether its last transaction was committed is uncertain" in session.verdict.for_model("main")
    con = await session.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    await con.commit()
    await con.close()
    assert stage.outside(BALANCE) == 90


@pytest.mark.req("R79")
@pytest.mark.parametrize("rebuild", ["never", "auto"])
@pytest.mark.parametrize("end", ["its holders", "its backend"])
async def test_a_commit_that_ended_when_nobody_was_there_is_told_after_the_session_is_lost(
    stage: Stage, gate: Gate, rebuild: str, end: str
) -> None:
    session = await opened(stage, rebuild)
    client = stage.client(send_and_die, TAKE_TEN, "COMMIT")
    client.heard()
    client.wait()
    gate.open()
    until(lambda: (ask(session.folder, {"ask": "state"}) or {})["outcome"]["tag"] == "COMMIT")
    if end == "its holders":
        kill_all(stage)
    else:
        stage.outside(f"SELECT pg_terminate_backend({session.backend_pid}, 10000)")
        until(lambda: (ask(session.folder, {"ask": "state"}) or {})["gone"])

    session = await opened(stage, rebuild)
    assert "its last transaction was committed" in session.verdict.for_model("main")
    con = await session.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    await con.close()
    assert stage.outside(BALANCE) == 90


async def test_a_commit_that_still_runs_is_waited_for(stage: Stage, gate: Gate) -> None:
    pid = (await opened(stage, "auto")).backend_pid
    client = stage.client(send_and_die, TAKE_TEN, "COMMIT")
    client.heard()
    client.wait()
    until(gate.has_one_waiting)
    kill_all(stage)

    opening = asyncio.create_task(opened(stage, "auto"))
    looks = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '-- backend:%' AND datname = current_database()"
    await asyncio.to_thread(until, lambda: stage.outside(looks))
    assert not opening.done()
    gate.open()
    session = await opening
    assert stage.outside(BALANCE) == 90
    assert session.last_outcome is not None and session.last_outcome.tag == "COMMIT"
    assert not is_alive(stage, pid)


@pytest.mark.parametrize("rebuild", ["never", "auto"])
async def test_an_answer_lost_on_the_network(stage: Stage, way: Proxy, rebuild: str) -> None:
    session = await opened(stage, rebuild, way.url)
    con = await session.connect()
    await con.execute(TAKE_TEN)
    way.cut_next_commit("after")
    with pytest.raises(psycopg.OperationalError):
        await con.commit()
    await con.close()
    assert stage.outside(BALANCE) == 90

    session = await opened(stage, rebuild, way.url)
    assert "was committed" in session.verdict.for_model("main")
    await session.commit()
    assert stage.outside(BALANCE) == 90


@pytest.mark.parametrize("rebuild", ["never", "auto"])
async def test_a_commit_that_never_arrived_is_undone_and_may_be_done_again(
    stage: Stage, way: Proxy, rebuild: str
) -> None:
    session = await opened(stage, rebuild, way.url)
    con = await session.connect()
    await con.execute(TAKE_TEN)
    way.cut_next_commit("before")
    with pytest.raises(psycopg.OperationalError):
        await con.commit()
    await con.close()

    session = await opened(stage, rebuild, way.url)
    assert session.level == {"never": "lost", "auto": "rebuilt"}[rebuild]
    assert "rolled back" in session.verdict.for_model("main")
    assert session.last_outcome is not None
    assert (session.last_outcome.statement, session.last_outcome.state) == ("COMMIT", "undone")
    assert stage.outside(BALANCE) == 100
    await session.commit()
    assert stage.outside(BALANCE) == {"never": 100, "auto": 90}[rebuild]


@pytest.mark.parametrize("moment, rows", [("before", 0), ("after", 1)])
async def test_what_the_server_cannot_say_is_uncertain_and_not_built_anew(
    stage: Stage, way: Proxy, moment: Any, rows: int
) -> None:
    """All in one message: the transaction had no number before it."""
    stage.outside("CREATE TABLE t (x int)")
    session = await opened(stage, "auto", way.url)
    con = await session.connect()
    await con.execute("SELECT 1")
    way.cut_next_commit(moment)
    with pytest.raises(psycopg.OperationalError):
        await con.execute("INSERT INTO t VALUES (1); COMMIT")
    await con.close()

    session = await opened(stage, "auto", way.url)
    assert "uncertain" in session.verdict.for_model("main")
    assert session.last_outcome is not None and session.last_outcome.state == "uncertain"
    con = await session.connect()
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    await con.close()
    assert stage.outside("SELECT count(*) FROM t") == rows


@pytest.mark.parametrize("in_transaction, state", [(True, "undone"), (False, "uncertain")])
async def test_a_statement_under_way_when_all_died_is_told(stage: Stage, in_transaction: bool, state: str) -> None:
    stage.outside("CREATE TABLE t (x int)")
    with psycopg.connect(stage.url) as lock:
        lock.execute("LOCK TABLE t")
        session = await opened(stage, "auto")
        pid = session.backend_pid
        client = stage.client(send_and_die, TAKE_TEN if in_transaction else "", "INSERT INTO t VALUES (1)")
        client.heard()
        client.wait()
        until(lambda: stage.outside("SELECT count(*) FROM pg_locks WHERE NOT granted"))
        kill_all(stage)
        session = await opened(stage, "auto")
        assert not is_alive(stage, pid)
    assert session.last_outcome is not None
    assert (session.last_outcome.statement, session.last_outcome.state) == ("INSERT INTO t VALUES (1)", state)
    assert "INSERT INTO t VALUES (1): was under way" in session.verdict.for_model("main")
    await session.rollback()
    assert stage.outside("SELECT count(*) FROM t") == 0


async def test_the_server_may_die_in_the_middle_of_a_commit(stage: Stage, gate: Gate) -> None:
    session = await opened(stage, "auto")
    client = stage.client(send_and_die, TAKE_TEN, "COMMIT")
    client.heard()
    client.wait()
    until(gate.has_one_waiting)
    stage.outside(f"SELECT pg_terminate_backend({session.backend_pid})")
    stage.wait("gone")
    gate.open()
    session = await opened(stage, "auto")
    assert session.level == "rebuilt"
    assert "COMMIT: was under way, and was rolled back" in session.verdict.for_model("main")
    await session.commit()
    assert stage.outside(BALANCE) == 90


@step(identity=lambda con: ())
async def take_ten(con: Any) -> None:
    await con.execute(TAKE_TEN)


@pytest.mark.parametrize("rebuild", ["never", "auto"])
async def test_a_durable_function_walks_on_after_the_block_that_was_committed(
    stage: Stage, way: Proxy, rebuild: str
) -> None:
    async def program() -> str:
        con = await (await opened(stage, rebuild, way.url)).connect()
        async with con.transaction():
            await take_ten(con)
        await con.close()
        return "done"

    way.cut_next_commit("after")
    first = await play(program)
    assert first.attempt.unwinding.is_restarting
    again = await play(program, journal=first.journal)
    assert again.result() == "done"
    assert stage.outside(BALANCE) == 90


async def test_a_commit_by_the_owner_that_the_server_refuses_is_told(stage: Stage) -> None:
    stage.outside("CREATE TABLE t (x int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    session = await opened(stage)
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1), (1)")
    await con.close()
    with pytest.raises(SqlFailed, match="duplicate key"):
        await session.commit()
    assert stage.outside("SELECT count(*) FROM t") == 0


def test_a_failing_question_for_the_number_fails_the_commit(tmp_path: Path) -> None:
    """A COMMIT after it would be answered with ROLLBACK, which drivers do not look at."""
    session, witness = Session(b"T"), CommitWitness(Trace(str(tmp_path / "trace")), Server(tells=True))
    session.attach()
    session.client_said(wire.query("COMMIT"))
    assert witness.must_ask(session, is_idle=True)
    witness.question()
    notice = wire.complaint(b"N", "NOTICE", "00000", "by the way")
    refusal = wire.complaint(b"E", "ERROR", "57014", "canceled") + wire.ready(b"E")
    assert witness.hear(notice + refusal[:20]) == notice
    assert witness.hear(refusal[20:]) == b""
    session.fail_waiting(witness.failure)
    assert not session.to_server and session.is_quiet and session.status == b"E"
    assert [kind for kind, _ in wire.Frames().feed(bytes(session.to_client))] == list(b"EZ")
    assert b"57014" in session.to_client


@pytest.mark.parametrize(
    "sql, ending",
    [
        ("COMMIT", endings.COMMIT),
        ("  commit work;\n", endings.COMMIT),
        ("END TRANSACTION", endings.COMMIT),
        ("-- now\nEND;", endings.COMMIT),
        ("PREPARE TRANSACTION 'x'", endings.COMMIT),
        ("COMMIT AND CHAIN", endings.MIXED),
        ("INSERT INTO t VALUES (1);COMMIT", endings.MIXED),
        ("SELECT 1;/**/END", endings.MIXED),
        ("PREPARE/**/TRANSACTION 'x'", endings.MIXED),
        ("/* a */ COMMIT; /* b */ COMMIT", endings.MIXED),
        ("ROLLBACK", endings.ROLLBACK),
        ("ROLLBACK; INSERT INTO t VALUES (1)", endings.MIXED),
        ("ROLLBACK TO SAVEPOINT a", endings.NONE),
        ("SELECT CASE WHEN x THEN 1 END FROM t", endings.NONE),
        ("INSERT INTO commits VALUES (1)", endings.NONE),
    ],
)
def test_statements_that_may_end_a_transaction_are_known(sql: str, ending: str) -> None:
    assert endings.ending_of(sql.encode()) == ending


def test_a_commit_by_a_prepared_name_is_known() -> None:
    session = Session(b"T")
    session.attach()
    session.client_said(wire.message(b"P", b"c\0COMMIT\0\0\0") + wire.SYNC)
    session.server_said(b"1\0\0\0\4" + wire.ready(b"T"))
    session.rested()
    assert session.ending == endings.NONE
    session.client_said(wire.message(b"B", b"\0c\0" + bytes(6)) + wire.message(b"E", b"\0" + bytes(4)) + wire.SYNC)
    assert session.ending == endings.COMMIT


@pytest.mark.parametrize(
    "left, said, why, transaction, state",
    [
        ({"state": "T"}, "", "", "rolled back", None),
        ({"state": "I"}, "", "", "", None),
        ({"before": "T"}, "", "", "rolled back", "undone"),
        ({"before": "T", "ending": "commit"}, "committed", "", "committed", "done"),
        ({"before": "T", "ending": "commit"}, "aborted", "", "rolled back", "undone"),
        ({"before": "T", "ending": "commit"}, "prepared", "", "prepared", "done"),
        ({"before": "T", "ending": "commit"}, "", "it crashed", "uncertain", "uncertain"),
        ({"before": "T", "ending": "commit", "is_asked": True}, "", "", "committed", "done"),
        ({"before": "T", "ending": "mixed"}, "committed", "", "committed", "uncertain"),
        ({"before": "T", "ending": "rollback"}, "", "", "rolled back", "undone"),
        ({"before": "E", "ending": "commit"}, "", "", "rolled back", "undone"),
        ({"before": "I"}, "", "no number", "", "uncertain"),
        ({"before": "I"}, "aborted", "", "", "undone"),
    ],
)
def test_what_became_of_a_session_is_judged_by_what_is_known(
    left: dict[str, Any], said: str, why: str, transaction: str, state: str | None
) -> None:
    found = judge(Left(**{"state": "W", "server": Server(), **left}), said, why, "")
    assert (found.transaction, found.outcome.state if found.outcome else None) == (transaction, state)


def test_the_outer_block_is_noted_however_many_are_open_in_it(tmp_path: Path) -> None:
    trace = Trace(str(tmp_path / "trace"))
    blocks = {"line": "uid/1", "last": 5000, "open": list(range(1, 5000)), "ended": {}}
    trace.note(Left("W", Server(), "T", "COMMIT", endings.COMMIT, blocks=blocks))
    left = trace.read()
    assert left is not None and left.blocks == {**blocks, "open": [1]}
    assert judge(left, "committed", "", "").blocks["ended"] == {"number": 1, "how": "COMMIT", "outcome": "committed"}
