"""Statements sent in one go: how values go, what comes back, and what an error leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import perdure
from perdure._store.postgres.connector import Connection
from perdure._store.postgres.wire import Statement, Wire
from perdure._store.sql import Queries

HERE = Path(perdure.__file__).parent / "_store" / "postgres"
ECHO = Statement("echo", "SELECT %(t)s::text, %(n)s::bigint, %(b)s::bytea, %(j)s::json::text, %(k)s::jsonb::text")
ONE, FAIL = Statement("one", "SELECT 1"), Statement("fail", "SELECT 1 / %(n)s::int")


@pytest.fixture(params=["prepared", "unprepared"])
def wire(postgres_url: str, request: pytest.FixtureRequest) -> Iterator[Wire]:
    with Connection.connect(postgres_url, autocommit=True) as connection:
        connection.may_prepare = request.param == "prepared"
        yield Wire(connection)


@pytest.mark.parametrize("folder", ["queries", "statements"])
def test_every_parameter_of_our_sql_says_its_type(folder: str) -> None:
    queries = Queries(HERE / folder)
    assert [name for name in queries.names() if b"%(" in Statement(name, queries[name][0]).text] == []


@pytest.mark.parametrize(
    "row",
    [
        ("é\n'%s", -(2**63), b"\0\xff", '{"a": 1}', '{"k": "\\u00e9"}'),
        ("", 2**63 - 1, b"", "[]", "null"),
        (None, None, None, None, None),
    ],
)
def test_values_come_back_as_they_went(wire: Wire, row: tuple[Any, ...]) -> None:
    for _ in range(2):  # prepared by then
        [result] = wire.run([(ECHO, dict(zip("tnbjk", row, strict=True)))])
        [(*plain, document)] = wire.rows(result)
        assert plain == list(row[:-1])
        assert document == (row[-1] and row[-1].replace("\\u00e9", "é"))


@pytest.mark.parametrize("bad", [{"n": 1.5}, {"n": "1"}, {"t": 1}, {"t": "\ud800"}, {"b": "text"}])
def test_a_value_of_another_kind_is_refused_and_the_wire_works_on(wire: Wire, bad: dict[str, Any]) -> None:
    with pytest.raises((TypeError, AttributeError, UnicodeEncodeError)):
        wire.run([(ONE, {}), (ECHO, {**dict.fromkeys("tnbjk"), **bad})])
    assert wire.rows(*wire.run([(ONE, {})])) == [(1,)]


@pytest.mark.parametrize("odd", [{"t": "a\0b"}, {"j": '"\0"'}, {"k": '"\0"'}])
def test_a_nul_in_a_text_is_refused_and_never_cuts_it_short(wire: Wire, odd: dict[str, Any]) -> None:
    with pytest.raises(psycopg.DataError):
        wire.run([(ECHO, {**dict.fromkeys("tnbjk"), **odd})])
    assert wire.rows(*wire.run([(ONE, {})])) == [(1,)]


def test_the_first_error_is_told_and_nothing_after_it_is_run(wire: Wire) -> None:
    make = Statement("make", "CREATE TABLE made (n int)")
    with pytest.raises(psycopg.errors.DivisionByZero):
        wire.run([(ONE, {}), (FAIL, {"n": 0}), (make, {}), (FAIL, {"n": 0})])
    assert wire.connection.execute("SELECT to_regclass('made')").fetchone() == (None,)
    assert [wire.rows(result) for result in wire.run([(ONE, {}), (FAIL, {"n": 1})])] == [[(1,)], [(1,)]]


def test_a_statement_that_cannot_be_prepared_is_an_error_like_another(wire: Wire) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable):
        wire.run([(ONE, {}), (Statement("bad", "SELECT * FROM nowhere"), {})])
    assert wire.rows(*wire.run([(ONE, {})])) == [(1,)]


def test_much_in_both_directions_at_once_does_not_stand_still(wire: Wire) -> None:
    """More than both buffers hold: neither side may wait for the other to read first."""
    payload = bytes(100_000)
    asked = [(ECHO, {**dict.fromkeys("tnbjk"), "b": payload})] * 300
    assert {row[0][2] for row in map(wire.rows, wire.run(asked))} == {payload}


def test_a_connection_that_is_ended_is_told(wire: Wire, postgres_url: str) -> None:
    wire.run([(ONE, {})])
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", (wire.connection.info.backend_pid,))
    with pytest.raises(psycopg.OperationalError):
        wire.run([(ONE, {}), (ONE, {})])
    assert wire.connection.closed
