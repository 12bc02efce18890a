"""`run_script` with the scripts and connections that people have: what it cannot keep its word for is refused."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from perdure import Perdure, Retry, durable, loops, step
from perdure._durable.progress.sql_scripts import split
from perdure.errors import InvalidInput


def _work(open_it: Any, script: str, *, fails: bool = False, **options: Any) -> Any:
    tries: list[int] = []

    @step(retry=Retry(2, wait=timedelta(0), on=[ValueError]))
    async def run() -> int:
        with contextlib.closing(open_it()) as connection:
            done = await loops.run_script(connection, script, **options)
        tries.append(1)
        if fails and len(tries) == 1:
            raise ValueError
        return done

    @durable
    async def work() -> int:
        return await run()

    return work


@pytest.fixture(params=["sqlite3", "psycopg", "psycopg autocommit"])
def open_it(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Opens a database with a table `done`."""
    if request.param == "sqlite3":
        found: Any = lambda: sqlite3.connect(tmp_path / "user.db")  # noqa: E731
    else:
        url, autocommit = request.getfixturevalue("postgres_url"), request.param.endswith("autocommit")
        found = lambda: psycopg.connect(url, autocommit=autocommit, row_factory=dict_row)  # noqa: E731
    with contextlib.closing(found()) as connection:
        connection.execute("CREATE TABLE done (n INTEGER)")
        connection.commit()
    return found


def _count(open_it: Any) -> int:
    with contextlib.closing(open_it()) as connection:
        return len(connection.execute("SELECT n FROM done").fetchall())


async def test_a_transaction_of_the_users_own_is_neither_committed_nor_ended(open_it: Any, tmp_path: Path) -> None:
    def inside() -> Any:
        connection = open_it()
        connection.execute("BEGIN")
        connection.execute("INSERT INTO done VALUES (99)")
        return connection

    async with Perdure(tmp_path / "p.db") as app:
        for cursor in ("target", "whole", "journal"):
            with pytest.raises(InvalidInput, match="inside a transaction"):
                await app.run(cursor, _work(inside, "INSERT INTO done VALUES (1)", cursor=cursor))
    assert _count(open_it) == 0


async def test_a_script_that_begins_or_ends_transactions_is_refused(open_it: Any, tmp_path: Path) -> None:
    words = ["BEGIN", "begin immediate", "-- all\nSTART  TRANSACTION", "commit", "END", "Rollback"]
    async with Perdure(tmp_path / "p.db") as app:
        for number, word in enumerate(words):
            script = f"INSERT INTO done VALUES (1); {word}; INSERT INTO done VALUES (2)"
            with pytest.raises(InvalidInput, match="statement 2 of the script"):
                await app.run(f"t{number}", _work(open_it, script))
    assert _count(open_it) == 0


async def test_a_script_goes_on_whatever_its_connection_makes_of_rows(open_it: Any, tmp_path: Path) -> None:
    work = _work(open_it, "INSERT INTO done VALUES (1); INSERT INTO done VALUES (2)", fails=True)
    async with Perdure(tmp_path / "p.db") as app:
        assert await app.run("t", work) == 0
    assert _count(open_it) == 2


@pytest.mark.req("R60")
@pytest.mark.parametrize("cursor", ["target", "journal"])
@pytest.mark.parametrize("autocommit", [True, False])
async def test_what_a_script_sets_for_its_session_is_set_in_the_next_one_too(
    postgres_url: str, tmp_path: Path, autocommit: bool, cursor: str
) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE SCHEMA apart")
        connection.execute("CREATE TABLE apart.gate (is_open BOOLEAN)")

    @step(retry=Retry(2, wait=timedelta(0)))
    async def run() -> int:
        with psycopg.connect(postgres_url, autocommit=autocommit) as connection:
            script = "SET search_path TO apart; SELECT 1 / count(*) FROM gate; CREATE TABLE made (n INTEGER)"
            try:
                return await loops.run_script(connection, script, cursor=cursor)  # type: ignore[arg-type]
            except psycopg.errors.DivisionByZero:
                with psycopg.connect(postgres_url) as other:
                    other.execute("INSERT INTO apart.gate VALUES (true)")
                raise

    @durable
    async def work() -> int:
        return await run()

    async with Perdure(tmp_path / "p.db") as app:
        assert await app.run("t", work) == 2
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regclass('apart.made') IS NOT NULL").fetchone() == (True,)


async def test_a_pragma_is_not_lost_in_a_transaction(tmp_path: Path) -> None:
    script = (
        "CREATE TABLE p (n INTEGER PRIMARY KEY); CREATE TABLE c (n REFERENCES p);"
        "PRAGMA foreign_keys = ON; INSERT INTO c VALUES (1)"
    )
    async with Perdure(tmp_path / "p.db") as app:
        with pytest.raises(Exception, match="FOREIGN KEY"):
            await app.run("t", _work(lambda: sqlite3.connect(tmp_path / "user.db"), script))


async def test_scripts_that_are_the_first_in_a_database_at_once_all_run(postgres_url: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE done (n INTEGER)")

    def run(number: int) -> int:
        async def one() -> int:
            async with Perdure(tmp_path / f"{number}.db") as app:
                work = _work(lambda: psycopg.connect(postgres_url), "INSERT INTO done VALUES (1)")
                found: int = await app.run("t", work)
                return found

        return asyncio.run(one())

    assert await asyncio.gather(*(asyncio.to_thread(run, number) for number in range(6))) == [1] * 6
    assert _count(lambda: psycopg.connect(postgres_url)) == 6


async def test_perdures_own_store_is_no_target(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    async with Perdure(path) as app:
        with pytest.raises(InvalidInput, match="perdure's own store"):
            await app.run("t", _work(lambda: sqlite3.connect(path), "CREATE TABLE mine (n)"))


@pytest.mark.parametrize(
    "script, statements",
    [
        (r"a E'it\'s; b'; c", [r"a E'it\'s; b'", "c"]),
        (r"like'\'; c", [r"like'\'", "c"]),
        (
            "create temp trigger t begin a case b end; c; end; d",
            ["create temp trigger t begin a case b end; c; end", "d"],
        ),
        (
            "create or replace function f() begin atomic a; b; end; c",
            ["create or replace function f() begin atomic a; b; end", "c"],
        ),
        (
            "create function f() returns trigger as $$ begin a; end; $$ language plpgsql; c",
            ["create function f() returns trigger as $$ begin a; end; $$ language plpgsql", "c"],
        ),
        ("create rule r as on insert to t do (a; b); c", ["create rule r as on insert to t do (a; b)", "c"]),
        ("select `a;b`; c", ["select `a;b`", "c"]),
    ],
)
def test_a_script_is_split_where_a_statement_ends_and_nowhere_else(script: str, statements: list[str]) -> None:
    assert list(split(script)) == statements


@pytest.mark.req("R60")
@pytest.mark.parametrize("is_same", [True, False], ids=["same connection", "new connection"])
@pytest.mark.parametrize("cursor", ["target", "journal"])
async def test_a_script_that_attaches_a_database_goes_on_on_whatever_connection(
    tmp_path: Path, is_same: bool, cursor: Any
) -> None:
    script = (
        f"ATTACH '{tmp_path}/one.db' AS other; CREATE TABLE other.one (n); DETACH other;"
        f"ATTACH '{tmp_path}/two.db' AS other; SELECT n FROM gate; CREATE TABLE other.two (n)"
    )
    opened: list[sqlite3.Connection] = []

    @step(retry=Retry(2, wait=timedelta(0)))
    async def run() -> int:
        is_second = bool(opened)
        if not (is_second and is_same):
            opened.append(sqlite3.connect(tmp_path / "user.db"))
        if is_second:
            opened[-1].execute("CREATE TABLE gate (n)")
        return await loops.run_script(opened[-1], script, cursor=cursor)

    @durable
    async def work() -> int:
        return await run()

    async with Perdure(tmp_path / "p.db") as app:
        assert await app.run("t", work) == 2
    for connection in opened:
        connection.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "two.db")) as two:
        assert two.execute("SELECT name FROM sqlite_schema").fetchall() == [("two",)]
