"""A marker in the same commit: after a crash it tells that the effect happened, and what came of it."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from psycopg.rows import dict_row

from perdure import Perdure
from perdure._durable import Retry, durable, effect, pg_probe, transaction
from perdure._model import Pause
from perdure.errors import InvalidInput, NoTask, NotStorable
from tests.durable.effects_kit import Died, Places, ended, raising, until_paused

_NOTHING = timedelta(0)
INSERT = {"sqlite": "INSERT INTO orders VALUES (?)", "postgres": "INSERT INTO orders VALUES (%s)"}


class Base:
    """A user's database, and how a driver opens it."""

    def __init__(self, driver: str, place: str) -> None:
        self.driver, self.place = driver, place
        with contextlib.closing(self.look_at()) as connection:
            connection.execute("CREATE TABLE orders (name TEXT NOT NULL)")
            connection.commit()

    @property
    def insert(self) -> str:
        return INSERT["postgres" if self.driver.startswith("psycopg") else "sqlite"]

    @property
    def is_async(self) -> bool:
        return self.driver == "psycopg async"

    def open(self) -> Any:
        """What is given to @transaction: a function that makes a connection."""
        return {
            "sqlite3": lambda: sqlite3.connect(self.place),
            "apsw": lambda: apsw.Connection(self.place),
            "psycopg": lambda: psycopg.connect(self.place, row_factory=dict_row),
            "psycopg autocommit": lambda: psycopg.connect(self.place, autocommit=True),
            "psycopg async": lambda: psycopg.AsyncConnection.connect(self.place),
        }[self.driver]

    def look_at(self) -> Any:
        return psycopg.connect(self.place) if self.driver.startswith("psycopg") else sqlite3.connect(self.place)

    def orders(self) -> list[str]:
        with contextlib.closing(self.look_at()) as connection:
            return [row[0] for row in connection.execute("SELECT name FROM orders").fetchall()]

    def markers(self) -> int:
        with contextlib.closing(self.look_at()) as connection:
            try:
                return int(connection.execute("SELECT count(*) FROM perdure_markers").fetchone()[0])
            except (psycopg.errors.UndefinedTable, sqlite3.OperationalError):
                return 0


DRIVERS = ["sqlite3", "apsw", "psycopg", "psycopg autocommit", "psycopg async"]


@pytest.fixture(params=DRIVERS)
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Base:
    driver = request.param
    place = request.getfixturevalue("postgres_url") if driver.startswith("psycopg") else str(tmp_path / "user.db")
    return Base(driver, place)


@pytest.fixture
def app_url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/store/perdure.db"


def inserting(base: Base, **options: Any) -> Any:
    """The same effect, as the driver wants it."""
    if base.is_async:

        @transaction(base.open(), **options)
        async def add(connection: Any, name: str, times: int = 1) -> dict[str, int]:
            for _ in range(times):
                await connection.execute(base.insert, (name,))
            return {"rows": times}

        return add

    @transaction(base.open(), **options)
    def add_here(connection: Any, name: str, times: int = 1) -> dict[str, int]:
        for _ in range(times):
            connection.execute(base.insert, (name,))
        return {"rows": times}

    return add_here


def adding(add: Any, base: Base) -> Any:
    @durable
    async def work() -> Any:
        found = add("tea", times=2)
        return await found if base.is_async else found

    return work


@pytest.mark.req("R65")
async def test_effect_and_marker_are_committed_together(base: Base, app_url: str) -> None:
    work = adding(inserting(base), base)
    async with Perdure(app_url) as app:
        assert await app.run("t", work) == {"rows": 2}
        assert await app.run("t", work) == {"rows": 2}
        assert [one.state for one in await app.effects.of("t")] == ["done"]
    assert base.orders() == ["tea", "tea"] and base.markers() == 1


@pytest.mark.req("R65", "R64")
@pytest.mark.parametrize(
    "place", ["effect.intended", "transaction.before_commit", "transaction.committed", "effect.done", "effect.recorded"]
)
async def test_cut_off_anywhere_it_happens_once_and_nobody_is_asked(
    base: Base, app_url: str, monkeypatch: Any, place: str
) -> None:
    add = inserting(base)
    work = adding(add, base)
    Places(monkeypatch).at(place, raising(Died()))
    async with Perdure(app_url) as app:
        assert isinstance(await ended(app, "t", work), Died)
        assert (len(base.orders()) > 0) == (base.markers() == 1)
        assert await app.run("t", work) == {"rows": 2}
    assert base.orders() == ["tea", "tea"] and base.markers() == 1


@pytest.mark.req("R65")
async def test_an_exception_rolls_back_and_is_a_definite_failure(base: Base, app_url: str) -> None:
    tries: list[int] = []

    def fails() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")

    if base.is_async:

        @transaction(base.open(), retry=Retry(2, wait=_NOTHING))
        async def add(connection: Any) -> None:
            await connection.execute(base.insert, ("tea",))
            fails()
    else:

        @transaction(base.open(), retry=Retry(2, wait=_NOTHING))
        def add(connection: Any) -> None:
            connection.execute(base.insert, ("tea",))
            fails()

    @durable
    async def work() -> str:
        try:
            _ = (await add()) if base.is_async else add()
        except ValueError as error:
            return str(error)
        raise AssertionError

    async with Perdure(app_url) as app:
        assert await app.run("t", work) == "not yet"
        assert [one.state for one in await app.effects.of("t")] == ["failed"]
    assert len(tries) == 2 and base.orders() == [] and base.markers() == 0


@pytest.mark.req("R65")
async def test_a_result_that_cannot_be_stored_is_rolled_back(base: Base, app_url: str) -> None:
    if base.is_async:

        @transaction(base.open())
        async def add(connection: Any) -> Any:
            await connection.execute(base.insert, ("tea",))
            return object()
    else:

        @transaction(base.open())
        def add(connection: Any) -> Any:
            connection.execute(base.insert, ("tea",))
            return object()

    @durable
    async def work() -> None:
        _ = (await add()) if base.is_async else add()

    async with Perdure(app_url) as app:
        with pytest.raises(NotStorable):
            await app.run("t", work)
    assert base.orders() == [] and base.markers() == 0


@pytest.mark.req("R65", "R64")
async def test_an_answer_to_commit_that_was_lost_is_settled_by_the_marker(
    base: Base, app_url: str, monkeypatch: Any
) -> None:
    from perdure._durable.databases import commit_markers

    side = commit_markers.Psycopg if base.driver.startswith("psycopg") else commit_markers.Sqlite
    commit, lost = side.commit, []

    async def commit_and_lose_the_answer(self: Any) -> None:
        await commit(self)
        if not lost:
            lost.append(1)
            raise ConnectionError("the line is dead")

    monkeypatch.setattr(side, "commit", commit_and_lose_the_answer)
    work = adding(inserting(base, retry=Retry(2, wait=_NOTHING)), base)
    async with Perdure(app_url) as app:
        assert await app.run("t", work) == {"rows": 2}
        assert [(one.state, one.tries) for one in await app.effects.of("t")] == [("done", 2)]
    assert base.orders() == ["tea", "tea"] and lost == [1]


async def test_two_tasks_have_markers_of_their_own(base: Base, app_url: str) -> None:
    work = adding(inserting(base), base)
    async with Perdure(app_url) as app:
        await app.run("t1", work)
        await app.run("t2", work)
    assert len(base.orders()) == 4 and base.markers() == 2


async def test_a_connection_of_the_users_own_stays_open_and_one_inside_a_transaction_is_refused(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "user.db")) as connection:
        connection.execute("CREATE TABLE orders (name TEXT)")

        @transaction(connection)
        def add(con: Any, name: str) -> int:
            return int(con.execute("INSERT INTO orders VALUES (?)", (name,)).rowcount)

        @durable
        async def work() -> int:
            return add("tea")

        async with Perdure(tmp_path / "p.db") as app:
            assert await app.run("t", work) == 1
            connection.execute("INSERT INTO orders VALUES ('mine')")
            with pytest.raises(InvalidInput, match="already inside a transaction"):
                await app.run("t2", work)
        assert connection.in_transaction
        connection.rollback()
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (1,)


async def test_perdures_own_store_and_unknown_connections_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.db"

    @transaction(lambda: apsw.Connection(str(path)))
    def own(con: Any) -> None:
        con.execute("DELETE FROM tasks")

    @transaction(object())
    def other(con: Any) -> None:
        raise AssertionError

    @durable
    async def work() -> None:
        own()

    @durable
    async def odd() -> None:
        other()

    with pytest.raises(NoTask):
        own()
    async with Perdure(path) as app:
        with pytest.raises(InvalidInput, match="perdure's own store"):
            await app.run("t", work)
        with pytest.raises(InvalidInput, match="cannot use a"):
            await app.run("t2", odd)
        assert await app.tasks.get("t") is not None


# ── transactions a user runs alone ───────────────────────────────────────────────────────────────


@pytest.mark.req("R64")
@pytest.mark.parametrize("place", ["effect.intended", "probe.marked", "effect.done"])
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_postgres_is_asked_how_a_transaction_ended(
    postgres_url: str, tmp_path: Path, monkeypatch: Any, place: str, kind: str
) -> None:
    base = Base("psycopg async" if kind == "async" else "psycopg autocommit", postgres_url)
    probe, died = pg_probe(base.open()), []

    def die_once(where: str) -> None:
        if where == place and not died:
            died.append(where)
            raise Died

    if kind == "async":

        @effect(verify=probe)
        async def add() -> str:
            async with await base.open()() as connection:
                await connection.execute(base.insert, ("tea",))
                await probe.mark(connection, "added")
                die_once("probe.marked")
            return "added"
    else:

        @effect(verify=probe)
        def add() -> str:
            with base.open()() as connection, connection.transaction():
                connection.execute(base.insert, ("tea",))
                probe.mark_here(connection, "added")
                die_once("probe.marked")
            return "added"

    @durable
    async def work() -> str:
        return (await add()) if kind == "async" else add()  # type: ignore[misc, no-any-return]

    if place != "probe.marked":
        Places(monkeypatch).at(place, raising(Died()))
    async with Perdure(tmp_path / "p.db") as app:
        assert isinstance(await ended(app, "t", work), Died)
        assert base.orders() == (["tea"] if place == "effect.done" else [])
        assert await app.run("t", work) == "added"
    assert base.orders() == ["tea"]


async def test_a_marker_without_a_result_is_asked_about(tmp_path: Path, monkeypatch: Any) -> None:
    base = Base("sqlite3", str(tmp_path / "user.db"))

    @transaction(base.open(), retry=Retry(1))
    def add(connection: Any) -> str:
        connection.execute(base.insert, ("tea",))
        connection.commit()  # which it should not
        raise Died

    @durable
    async def work() -> str:
        return add()

    async with Perdure(tmp_path / "p.db") as app:
        assert isinstance(await ended(app, "t", work), Died)
        assert isinstance(await until_paused(app, "t", work), Pause)
    assert base.orders() == ["tea"]
