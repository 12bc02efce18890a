"""A foreign driver cannot end a kept transaction by accident, however it writes it. The server is the judge."""

from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg
import pytest

from perdure._runtime.sessions.postgres import PostgresSession
from perdure.keeper.pgproxy.protocol import wire
from perdure.keeper.pgproxy.protocol.guard import Guard, statements
from perdure.keeper.pgproxy.session.session import Session
from tests.sessions.acts import one
from tests.sessions.kit import Stage

ENDS = [
    "ROLLBACK",
    "rollback work;",
    "ABORT",
    "Abort Transaction",
    "ROLLBACK AND CHAIN",
    "ROLLBACK AND NO CHAIN",
    "/* a /* nested */ comment */ ROLLBACK",
    "-- a line\n ROLLBACK",
    "--\rROLLBACK",
    "ROLL/* */BACK; ROLLBACK",
    "SELECT 1; ROLLBACK",
    ";;ROLLBACK",
    "SELECT ';'; ABORT",
    "SELECT $$;$$; ABORT",
    "SELECT $a$ $$ ; $b$ $a$; ABORT",
    "SELECT 'it''s'; ABORT",
    r"SELECT 'a\'; ABORT; --'",
    r"SELECT E'a\''; ABORT; --'",
    "SELECT E'a'\n'b\\''; ABORT; --'",
    'SELECT 1 AS "a;""b"; ABORT',
    "SELECT 1 AS a$b$; ABORT",
    "SELECT 1 --'\n; ABORT --'",
    "SELECT 1-- ;\n; ABORT",
    "SELECT 1 /*'*/; ABORT /*'*/",
    "ROLLBACK TO before_it_came",
    "ROLLBACK TRANSACTION TO SAVEPOINT before_it_came",
    "SAVEPOINT own; ROLLBACK TO before_it_came",
    'SAVEPOINT "Own"; ROLLBACK TO own',
    "SAVEPOINT own; RELEASE own; ROLLBACK TO SAVEPOINT own",
    "PREPARE TRANSACTION 'x'",
    "DISCARD ALL",
    "DISCARD /* */ TEMP",
    "RESET ALL",
    "RESET SESSION AUTHORIZATION",
    "CLOSE ALL",
    "UNLISTEN *",
    "SELECT pg_advisory_unlock_all()",
    'SELECT 1, pg_catalog . "pg_advisory_unlock_all" /* */ ()',
    "PREPARE p AS SELECT pg_advisory_unlock_all()",
    "SELECT " + "1, " * 100 + "pg_advisory_unlock_all()",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; END; ROLLBACK",
]
STAYS = [
    "SELECT 1",
    "",
    ";",
    "SELECT 'ROLLBACK'; SELECT '; ROLLBACK'",
    "SELECT $$; ROLLBACK$$",
    "SELECT $tag$; ROLLBACK; $$ ; ROLLBACK; $tag$",
    "/* ; ROLLBACK; /* */ ; ROLLBACK */ SELECT 1",
    "-- ; ROLLBACK",
    r"SELECT E'\'; ROLLBACK; --'",
    "SELECT E'a'\n  -- more\n 'b\\'; ROLLBACK; --'",
    r"SELECT 'a\', '; ROLLBACK; --'",
    'SELECT 1 AS "; ROLLBACK"',
    "SAVEPOINT own; ROLLBACK TO own",
    'SAVEPOINT Own; ROLLBACK WORK TO SAVEPOINT "own"',
    "COMMIT",
    "END",
    "COMMIT AND CHAIN; ROLLBACK",
    "COMMIT; DISCARD ALL",
    "ROLLBACK PREPARED 'x'",
    "RESET work_mem",
    "CLOSE mine",
    "UNLISTEN mine",
    "DEALLOCATE ALL",
    "SELECT 'pg_advisory_unlock_all()'",
    "CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1; SELECT 2)",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; END",
]
PARAMETERS = {"standard_conforming_strings": "on", "client_encoding": "UTF8"}


def query(sql: str) -> bytes:
    return wire.query(sql)


def parse(sql: str, name: bytes = b"") -> bytes:
    return wire.message(b"P", name + b"\0" + sql.encode() + b"\0\0\0")


def bind(statement: bytes, portal: bytes = b"") -> bytes:
    return wire.message(b"B", portal + b"\0" + statement + b"\0" + bytes(6))


def execute(portal: bytes = b"") -> bytes:
    return wire.message(b"E", portal + b"\0" + bytes(4))


@pytest.mark.parametrize("sql", ENDS)
def test_what_would_end_foreign_work_is_known_in_any_dress(sql: str) -> None:
    assert Guard().would_end(ord("Q"), query(sql), PARAMETERS)
    assert Guard().would_end(ord("P"), parse(sql), PARAMETERS)


@pytest.mark.parametrize("sql", STAYS)
def test_what_only_looks_like_it_is_let_through(sql: str) -> None:
    assert not Guard().would_end(ord("Q"), query(sql), PARAMETERS)
    assert not Guard().would_end(ord("P"), parse(sql), PARAMETERS)


def test_strings_with_backslashes_are_read_as_the_session_reads_them() -> None:
    hidden, shown = r"SELECT 'a\'; ROLLBACK; --'", r"SELECT 'a\''; ROLLBACK; --'"
    off = {"standard_conforming_strings": "off"}
    assert not Guard().would_end(ord("Q"), query(hidden), off)
    assert Guard().would_end(ord("Q"), query(shown), off)


def test_an_encoding_whose_quotes_cannot_be_told_is_judged_by_its_words() -> None:
    assert Guard().would_end(ord("Q"), query("SELECT 'rollback'"), {"client_encoding": "SJIS"})
    assert not Guard().would_end(ord("Q"), query("SELECT 1"), {"client_encoding": "SJIS"})


def test_a_statement_parsed_in_a_failed_transaction_is_judged_when_it_is_bound_or_executed() -> None:
    session = Session(b"T")
    session.attach(guarded=True)
    session.client_said(query("SAVEPOINT own; SELECT 1/0"))
    session.server_said(wire.complaint(b"E", "ERROR", "22012", "division by zero") + wire.ready(b"E"))
    session.client_said(parse("ROLLBACK", b"end") + wire.SYNC)
    session.server_said(b"1\0\0\0\4" + wire.ready(b"E"))
    session.client_said(query("ROLLBACK TO own"))
    session.server_said(wire.message(b"C", b"ROLLBACK\0") + wire.ready(b"T"))
    session.to_server.clear()
    session.to_client.clear()
    session.client_said(bind(b"end") + execute() + wire.SYNC)
    assert session.to_server == b""
    assert b"is kept" in session.to_client and session.to_client.endswith(wire.ready(b"T"))


def test_a_transaction_that_a_client_chained_to_the_kept_one_is_its_own() -> None:
    session = Session(b"T")
    session.attach(guarded=True)
    session.client_said(query("COMMIT AND CHAIN"))
    session.server_said(wire.message(b"C", b"COMMIT\0") + wire.ready(b"T"))
    session.client_said(query("ROLLBACK"))
    assert bytes(session.to_server).endswith(query("ROLLBACK"))


# ── the server as judge ──────────────────────────────────────────────────────────────────────────

_SNIPPETS = (
    *("SELECT 1", ";", ";", " ", "\n", "'", "''", '"', "\\", "E'", "e'", "$$", "$a$", "$1$", "a$b$", "/*", "*/", "--"),
    *("'x'", "'a;b'", " AS c", ' AS "d;"', "E'a\\'b'", "$$ ; $$", "/* ; */", "-- ;\n", "U&'a'", "(", ")", ",2", "-"),
    *("SELECT $q$;$q$", "\r", "\t", "'\n'", "é"),
)
_VALUES = (
    *(
        "1",
        "'a'",
        "';'",
        "'it''s;'",
        "E'\\';'",
        "E'a;'\n'b\\';'",
        "$$;$$",
        "$a$ $$;$a$",
        "U&';'",
        "B'1'",
        "(1)",
        "'\\\\'",
    ),
    *("'a;'\n--;'\n';b'", "-1", "- - 1", "1-- ;'\n", "1/*;'/*;*/;*/", "1 AS a$b$", '1 AS "a;""b"', "'\\;\\\\'"),
)
_GAPS = (" ", "\n", "/*;*/", "/*/*;'*/*/", "--;'\n", "--\r")


def made_up(draw: random.Random) -> bytes:
    """A query, or what looks like one."""
    if draw.random() < 0.5:
        return "".join(["SELECT 1", *draw.choices(_SNIPPETS, k=draw.randrange(1, 7))]).encode()
    parts = []
    for _ in range(draw.randrange(1, 4)):
        parts += [
            "SELECT",
            draw.choice(_GAPS),
            draw.choice(_VALUES),
            ",",
            draw.choice(_VALUES),
            draw.choice(_GAPS),
            ";",
        ]
    if draw.random() < 0.3:
        parts[draw.randrange(len(parts))] = draw.choice(_SNIPPETS)
    return "".join(parts).encode()


@pytest.fixture
def server(stage: Stage) -> Iterator[psycopg.Connection]:
    with psycopg.connect(stage.url, autocommit=True) as connection:
        yield connection


def counted(server: psycopg.Connection, sql: bytes) -> int | None:
    """How many statements the server finds in a query; None when it cannot read it."""
    server.pgconn.send_query(sql)
    count = 0
    while (result := server.pgconn.get_result()) is not None:
        if result.status == psycopg.pq.ExecStatus.FATAL_ERROR:
            count = -1_000_000
        elif result.status != psycopg.pq.ExecStatus.EMPTY_QUERY:
            count += 1
    return count if count >= 0 else None


@pytest.mark.parametrize("strings", ["on", "off"])
def test_a_query_has_as_many_statements_as_the_server_finds_in_it(server: psycopg.Connection, strings: str) -> None:
    server.execute(f"SET standard_conforming_strings = {strings}".encode())
    server.execute("SET client_min_messages = error; SET escape_string_warning = off; SET backslash_quote = on")
    draw = random.Random(17)
    judged = several = 0
    for _ in range(4000):
        sql = made_up(draw)
        found = counted(server, sql)
        if found is None:
            continue
        judged += 1
        several += found > 1
        assert len(list(statements(sql, backslashes=strings == "off"))) == found, sql
    assert judged > 1000 and several > 500, "too few of them were queries at all"


async def leave_open(stage: Stage) -> PostgresSession:
    stage.outside("CREATE TABLE t (x int)")
    session = await stage.open()
    con = await session.connect()
    await con.execute("SAVEPOINT before_it_came")
    await con.execute("INSERT INTO t VALUES (1)")
    await con.close()
    stage.wait("alone")
    return session


async def test_a_foreign_driver_is_refused_however_it_writes_it_and_the_transaction_stays(stage: Stage) -> None:
    session = await leave_open(stage)
    with psycopg.connect(session.url, autocommit=True) as foreign:
        for sql in ENDS:
            for send in (foreign.pgconn.exec_, lambda text: foreign.pgconn.exec_params(text, [])):
                result = send(sql.encode())
                assert b"is kept" in result.error_message, sql
                assert foreign.pgconn.transaction_status == psycopg.pq.TransactionStatus.INTRANS, sql
    con = await stage.connect()
    assert await one(con, "SELECT count(*) FROM t") == (1,)
    await con.close()
