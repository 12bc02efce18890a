"""Transactions that end in an odd way, by the database or by the function itself: neither done twice nor lost."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import scalar_row

from perdure import Perdure, Retry, durable, effect, transaction
from perdure._model import Pause
from perdure.effects import pg_probe
from perdure.errors import InvalidInput, StepFailed
from tests.durable.effects_kit import Died, Places, ended, raising, until_paused

DRIVERS = ["sqlite3", "apsw", "psycopg", "psycopg autocommit", "SQLAlchemy on SQLite", "SQLAlchemy on PostgreSQL"]


made: list[sqlalchemy.Engine] = []


@pytest.fixture(autouse=True)
def _no_pool_is_left_open() -> Iterator[None]:
    yield
    while made:
        made.pop().dispose()


class Base:
    """A user's database with two tables: an order names a customer, which is looked at when it is committed."""

    def __init__(self, driver: str, place: str) -> None:
        self.driver, self.place = driver, place
        self.is_postgres = place.startswith("postgresql:")
        with contextlib.closing(self._look_at()) as connection:
            connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
            connection.execute(
                "CREATE TABLE orders (customer INTEGER UNIQUE REFERENCES customers DEFERRABLE INITIALLY DEFERRED)"
            )
            connection.execute("INSERT INTO customers VALUES (1), (2)")
            connection.commit()

    def _look_at(self) -> Any:
        return psycopg.connect(self.place) if self.is_postgres else sqlite3.connect(self.place)

    def db(self) -> Any:
        """What is given to @transaction."""
        if self.driver.startswith("SQLAlchemy"):
            return self.engine()
        return {
            "sqlite3": lambda: _strict(sqlite3.connect(self.place)),
            "apsw": lambda: _strict(apsw.Connection(self.place)),
            "psycopg": lambda: psycopg.connect(self.place),
            "psycopg autocommit": lambda: psycopg.connect(self.place, autocommit=True),
        }[self.driver]

    def engine(self, **options: Any) -> sqlalchemy.Engine:
        place = self.place.replace("postgresql:", "postgresql+psycopg:") if self.is_postgres else None
        engine = sqlalchemy.create_engine(place or f"sqlite:///{self.place}", **options)
        made.append(engine)
        if not self.is_postgres:
            sqlalchemy.event.listen(engine, "connect", lambda connection, _: _strict(connection))
        return engine

    def orders(self) -> list[int]:
        with contextlib.closing(self._look_at()) as connection:
            return sorted(row[0] for row in connection.execute("SELECT customer FROM orders").fetchall())


def _strict(connection: Any) -> Any:
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def run(connection: Any, statement: str) -> Any:
    """A statement, as the connection wants it."""
    return getattr(connection, "exec_driver_sql", connection.execute)(statement)


def calling(db: Any, body: Callable[[Any], Any], **options: Any) -> Any:
    """A durable function that does nothing but this transaction."""

    @transaction(db, name="add", **options)
    def add(connection: Any) -> str:
        found: str = body(connection)
        return found

    @durable
    async def work() -> str:
        return add()

    return work


@pytest.fixture(params=DRIVERS)
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Base:
    driver = request.param
    is_postgres = driver.startswith("psycopg") or driver.endswith("PostgreSQL")
    return Base(driver, request.getfixturevalue("postgres_url") if is_postgres else str(tmp_path / "user.db"))


@pytest.fixture
def lite(tmp_path: Path) -> Base:
    return Base("sqlite3", str(tmp_path / "user.db"))


# ── a driver that panics ─────────────────────────────────────────────────────────────────────────


class Panic(BaseException):
    """As libraries raise it that are written in another language: no Exception."""


class Closing(sqlite3.Connection):
    def close(self) -> None:
        super().close()
        raise Panic


class _Cursor(sqlite3.Cursor):
    """Raises once, when it has committed what somebody ordered."""

    has_raised = False

    def execute(self, statement: str, *values: Any) -> Any:
        found = super().execute(statement, *values)
        if statement == "COMMIT" and not _Cursor.has_raised:
            _Cursor.has_raised = True
            raise Panic
        return found


class Committing(sqlite3.Connection):
    def cursor(self, *_: Any) -> Any:
        return super().cursor(_Cursor)


@pytest.mark.req("R65")
@pytest.mark.parametrize("panicking", [Closing, Committing])
async def test_what_was_committed_is_done_though_the_driver_panics(
    lite: Base, tmp_path: Path, panicking: type[sqlite3.Connection]
) -> None:
    _Cursor.has_raised = False

    def order(connection: Any) -> str:
        connection.execute("INSERT INTO orders VALUES (1)")
        return "ordered"

    work = calling(lambda: sqlite3.connect(lite.place, factory=panicking), order)
    async with Perdure(tmp_path / "p.db") as app:
        assert await app.run("t", work) == "ordered"
    assert lite.orders() == [1]


# ── SQLAlchemy ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R65")
async def test_one_that_makes_the_table_of_markers_a_moment_too_late_is_done_all_the_same(
    postgres_url: str, tmp_path: Path
) -> None:
    base = Base("SQLAlchemy on PostgreSQL", postgres_url)
    made: list[str] = []

    def make_it_first(table: Any, *_: Any, **__: Any) -> None:
        if not made:
            made.append(table.name)
            with base.engine().begin() as other:
                table.create(other)

    def order(connection: Any) -> str:
        run(connection, "INSERT INTO orders VALUES (1)")
        return "ordered"

    sqlalchemy.event.listen(sqlalchemy.Table, "before_create", make_it_first)
    try:
        async with Perdure(tmp_path / "p.db") as app:
            assert await app.run("t", calling(base.engine(), order)) == "ordered"
    finally:
        sqlalchemy.event.remove(sqlalchemy.Table, "before_create", make_it_first)
    assert made == ["perdure_markers"] and base.orders() == [1]


@pytest.mark.req("R65")
@pytest.mark.parametrize("how", ["of the engine", "of the connection"])
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_connection_that_commits_each_statement_by_itself_is_refused(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str, how: str
) -> None:
    place = request.getfixturevalue("postgres_url") if engine == "postgres" else str(tmp_path / "user.db")
    base = Base("SQLAlchemy", place)
    option = {"isolation_level": "AUTOCOMMIT"}
    db = base.engine(**option) if how == "of the engine" else base.engine().execution_options(**option)

    def order(connection: Any) -> str:
        raise AssertionError

    async with Perdure(tmp_path / "p.db") as app:
        with pytest.raises(InvalidInput, match="commits each statement by itself"):
            await app.run("t", calling(db, order))
    with db.connect() as connection:
        assert run(connection, "SELECT count(*) FROM perdure_markers").scalar_one() == 0


# ── a COMMIT that is refused ─────────────────────────────────────────────────────────────────────


@pytest.mark.req("R64", "R65")
async def test_a_commit_that_the_database_refuses_is_a_definite_failure(base: Base, tmp_path: Path) -> None:
    tries: list[int] = []

    def order_for_nobody(connection: Any) -> str:
        tries.append(1)
        run(connection, "INSERT INTO orders VALUES (3)")
        return "ordered"

    async with Perdure(tmp_path / "p.db") as app:
        with pytest.raises(StepFailed, match=r"(?i)foreign.?key"):
            await app.run("t", calling(base.db(), order_for_nobody))
        assert [one.state for one in await app.effects.of("t")] == ["failed"]
    assert len(tries) == 1 and base.orders() == []


@pytest.mark.req("R64", "R65")
async def test_what_was_refused_once_is_tried_again_if_that_is_wanted(base: Base, tmp_path: Path) -> None:
    tries: list[int] = []

    def order(connection: Any) -> str:
        tries.append(1)
        run(connection, f"INSERT INTO orders VALUES ({3 if len(tries) == 1 else 2})")
        return f"ordered in go {len(tries)}"

    async with Perdure(tmp_path / "p.db") as app:
        assert await app.run("t", calling(base.db(), order, retry=Retry(2, wait=timedelta(0)))) == "ordered in go 2"
    assert base.orders() == [2]


async def test_a_connection_of_the_users_own_is_left_outside_the_transaction_that_was_refused(
    lite: Base, tmp_path: Path
) -> None:
    def order_for_nobody(connection: Any) -> str:
        run(connection, "INSERT INTO orders VALUES (3)")
        return "ordered"

    with contextlib.closing(lite.db()()) as connection:
        async with Perdure(tmp_path / "p.db") as app:
            with pytest.raises(StepFailed, match="FOREIGN KEY"):
                await app.run("t", calling(connection, order_for_nobody))
        assert not connection.in_transaction


# ── a transaction that ends inside the function ──────────────────────────────────────────────────


@pytest.mark.req("R64", "R65")
async def test_what_was_done_after_the_marker_was_rolled_back_is_asked_about(base: Base, tmp_path: Path) -> None:
    tries: list[int] = []

    def roll_back_and_go_on(connection: Any) -> str:
        tries.append(1)
        run(connection, "INSERT INTO orders VALUES (1)")
        run(connection, "ROLLBACK")
        run(connection, "INSERT INTO orders VALUES (2)")
        return "ordered"

    async with Perdure(tmp_path / "p.db") as app:
        work = calling(base.db(), roll_back_and_go_on, retry=Retry(2, wait=timedelta(0)))
        assert isinstance(await until_paused(app, "t", work), Pause)
        assert "has ended its transaction itself" in (await app.effects.list())[0].why
    assert len(tries) == 1


@pytest.mark.req("R64", "R65")
async def test_a_conflict_that_rolled_back_and_was_caught_is_not_called_done(lite: Base, tmp_path: Path) -> None:
    def order_what_is_free(connection: Any) -> str:
        connection.execute("INSERT INTO orders VALUES (1)")
        with contextlib.suppress(sqlite3.IntegrityError):
            connection.execute("INSERT OR ROLLBACK INTO orders VALUES (1)")
        connection.execute("INSERT INTO orders VALUES (2)")
        return "ordered"

    async with Perdure(tmp_path / "p.db") as app:
        work = calling(lite.db(), order_what_is_free, retry=Retry(1))
        assert isinstance(await until_paused(app, "t", work), Pause)
        assert [one.state for one in await app.effects.of("t")] == ["uncertain"]
    assert lite.orders() == []


# ── what the connection makes of rows ────────────────────────────────────────────────────────────


def _dicts(cursor: Any, row: Any) -> dict[str, Any]:
    columns = cursor.get_description() if isinstance(cursor, apsw.Cursor) else cursor.description
    return {column[0]: value for column, value in zip(columns, row, strict=True)}


def with_dicts(place: str, driver: str) -> Any:
    """A connection whose rows are dicts."""
    if driver == "apsw":
        connection = apsw.Connection(place)
        connection.row_trace = _dicts
        return connection
    opened = sqlite3.connect(place)
    opened.row_factory = _dicts
    return opened


@pytest.mark.req("R65")
@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
async def test_a_marker_is_found_whatever_the_connection_makes_of_rows(
    lite: Base, tmp_path: Path, monkeypatch: Any, driver: str
) -> None:
    def order(connection: Any) -> str:
        connection.execute("INSERT INTO orders VALUES (1)")
        [found] = connection.execute("SELECT customer FROM orders")
        return f"ordered {found}"

    work = calling(lambda: with_dicts(lite.place, driver), order)
    Places(monkeypatch).at("transaction.committed", raising(Died()))
    async with Perdure(tmp_path / "p.db") as app:
        assert isinstance(await ended(app, "t", work), Died)
        assert await app.run("t", work) == "ordered {'customer': 1}"
    assert lite.orders() == [1]


@pytest.mark.req("R64")
async def test_a_probe_works_whatever_the_connection_makes_of_rows(postgres_url: str, tmp_path: Path) -> None:
    base, deaths = Base("psycopg", postgres_url), [Died()]

    def opened() -> Any:
        return psycopg.connect(postgres_url, row_factory=scalar_row)

    probe = pg_probe(opened)

    @effect(verify=probe)
    def add() -> str:
        with opened() as connection:
            connection.execute("INSERT INTO orders VALUES (1)")
            probe.mark_here(connection, "ordered")
        if deaths:
            raise deaths.pop()
        return "ordered"

    @durable
    async def work() -> str:
        return add()

    async with Perdure(tmp_path / "p.db") as app:
        assert isinstance(await ended(app, "t", work), Died)
        assert await app.run("t", work) == "ordered"
    assert base.orders() == [1]


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
async def test_perdures_own_store_is_known_whatever_the_connection_makes_of_rows(tmp_path: Path, driver: str) -> None:
    async with Perdure(tmp_path / "p.db") as app:
        with pytest.raises(InvalidInput, match="perdure's own store"):
            await app.run("t", calling(lambda: with_dicts(str(tmp_path / "p.db"), driver), str))
