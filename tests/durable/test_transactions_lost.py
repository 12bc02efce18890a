"""A database that commits and is then out of reach: what was committed is never called failed, nor done twice."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import sessionmaker

from perdure import Perdure, Retry, durable, effect, idempotency_key, transaction
from perdure._model import Pause
from perdure.effects import DidNotHappen, pg_probe
from perdure.errors import InvalidInput
from tests.durable.effects_kit import Died, Places, ended, raising, until_paused

AT_ONCE = Retry(2, wait=timedelta(0))


class Base:
    """A user's database, which can be out of reach."""

    def __init__(self, place: str) -> None:
        self.place, self.is_away = place, False
        self.is_postgres = place.startswith("postgresql:")
        self.insert = f"INSERT INTO orders VALUES ({'%s' if self.is_postgres else '?'})"
        with contextlib.closing(self.open()) as connection:
            connection.execute("CREATE TABLE orders (name TEXT NOT NULL)")
            connection.commit()

    def open(self) -> Any:
        if self.is_away:
            raise ConnectionRefusedError("the database is away")
        return psycopg.connect(self.place) if self.is_postgres else sqlite3.connect(self.place)

    def orders(self) -> list[str]:
        with contextlib.closing(self.open()) as connection:
            return [row[0] for row in connection.execute("SELECT name FROM orders").fetchall()]


@pytest.fixture(params=["sqlite", "postgres"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Base:
    is_postgres = request.param == "postgres"
    return Base(request.getfixturevalue("postgres_url") if is_postgres else str(tmp_path / "user.db"))


def adding(db: Any, base: Base, **options: Any) -> Any:
    @transaction(db, **options)
    def add(connection: Any, name: str) -> str:
        connection.execute(base.insert, (name,))
        return f"added {name}"

    @durable
    async def work() -> str:
        return add("tea")

    return work


# ── out of reach after COMMIT ────────────────────────────────────────────────────────────────────


@pytest.mark.req("R64", "R65")
@pytest.mark.parametrize("how", ["killed", "the answer was lost"])
async def test_what_may_have_been_committed_is_not_failed_because_the_database_is_away(
    base: Base, tmp_path: Path, monkeypatch: Any, how: str
) -> None:
    def leave() -> None:
        base.is_away = True
        raise Died

    if how == "killed":
        Places(monkeypatch).at("transaction.committed", leave)
    else:
        from perdure._durable.databases import commit_markers

        side = commit_markers.Psycopg if base.is_postgres else commit_markers.Sqlite
        commit = side.commit

        async def commit_and_be_lost(self: Any) -> None:
            await commit(self)
            base.is_away = True
            raise ConnectionError("the line is dead")

        monkeypatch.setattr(side, "commit", commit_and_be_lost)
    work = adding(base.open, base, retry=AT_ONCE)
    async with Perdure(tmp_path / "p.db") as app:
        if how == "killed":
            assert isinstance(await ended(app, "t", work), Died)
        assert isinstance(await until_paused(app, "t", work), Pause)
        assert "its marker could not be looked for: ConnectionRefusedError" in (await app.effects.list())[0].why
        assert [one.state for one in await app.effects.of("t")] == ["uncertain"]
        await app.effects.settle("t", "retry")
        assert isinstance(await until_paused(app, "t", work), Pause)  # it still is
        base.is_away = False
        await app.effects.settle("t", "retry")
        assert await app.run("t", work) == "added tea"
        assert [one.state for one in await app.effects.of("t")] == ["done"]
    assert base.orders() == ["tea"]


async def test_a_database_that_is_away_from_the_first_is_a_definite_failure(base: Base, tmp_path: Path) -> None:
    base.is_away = True
    async with Perdure(tmp_path / "p.db") as app:
        with pytest.raises(ConnectionRefusedError):
            await app.run("t", adding(base.open, base, retry=AT_ONCE))
        assert [one.state for one in await app.effects.of("t")] == ["failed"]
    base.is_away = False
    assert base.orders() == []


async def test_a_connection_that_cannot_be_closed_takes_nothing_back(base: Base, tmp_path: Path) -> None:
    @contextlib.contextmanager
    def opened() -> Iterator[Any]:
        with contextlib.closing(base.open()) as connection:
            yield connection
        raise ConnectionError("the line is dead")

    async with Perdure(tmp_path / "p.db") as app:
        assert await app.run("t", adding(opened, base)) == "added tea"
        assert [one.state for one in await app.effects.of("t")] == ["done"]
    assert base.orders() == ["tea"]


async def test_a_connection_that_was_closed_is_called_so(postgres_url: str, tmp_path: Path) -> None:
    base = Base(postgres_url)
    connection = base.open()
    connection.close()
    async with Perdure(tmp_path / "p.db") as app:
        with pytest.raises(InvalidInput, match="is closed"):
            await app.run("t", adding(connection, base))


@pytest.mark.req("R64", "R65")
async def test_a_function_that_committed_by_itself_and_then_raised_has_not_failed(tmp_path: Path) -> None:
    base = Base(str(tmp_path / "user.db"))

    @transaction(base.open, retry=Retry(1))
    def add(connection: Any) -> str:
        with connection:  # which commits
            connection.execute(base.insert, ("tea",))
        raise ValueError("and then this")

    @durable
    async def work() -> str:
        return add()

    async with Perdure(tmp_path / "p.db") as app:
        assert isinstance(await until_paused(app, "t", work), Pause)
        assert "it has committed by itself, and then raised ValueError" in (await app.effects.list())[0].why
    assert base.orders() == ["tea"]


async def test_a_transaction_that_sqlite_ended_by_itself_is_a_definite_failure(tmp_path: Path) -> None:
    base = Base(str(tmp_path / "user.db"))

    @transaction(base.open)
    def add(connection: Any) -> None:
        connection.execute(base.insert, ("tea",))
        connection.execute("INSERT OR ROLLBACK INTO orders VALUES (NULL)")

    @durable
    async def work() -> None:
        add()

    async with Perdure(tmp_path / "p.db") as app:
        with pytest.raises(Exception, match="NOT NULL"):
            await app.run("t", work)
        assert [one.state for one in await app.effects.of("t")] == ["failed"]
    assert base.orders() == []


# ── where the markers are ────────────────────────────────────────────────────────────────────────


async def test_the_table_of_markers_is_made_where_the_connection_looks_for_it(
    postgres_url: str, tmp_path: Path
) -> None:
    base = Base(postgres_url)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE SCHEMA apart")
        connection.execute("CREATE TABLE apart.orders (name TEXT)")

    def apart() -> Any:
        return psycopg.connect(postgres_url, options="-c search_path=apart")

    async with Perdure(tmp_path / "p.db") as app:
        assert await app.run("t1", adding(base.open, base)) == "added tea"
        assert await app.run("t2", adding(apart, base)) == "added tea"
        with psycopg.connect(postgres_url) as connection:
            connection.execute("DROP TABLE perdure_markers")
        assert await app.run("t3", adding(base.open, base)) == "added tea"


@pytest.mark.req("R64")
async def test_a_probe_takes_no_mark_of_a_transaction_that_is_over(postgres_url: str, tmp_path: Path) -> None:
    base = Base(postgres_url)
    probe = pg_probe(base.open)

    @effect(verify=probe)
    def add() -> str:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            probe.mark_here(connection, "added")
            raise AssertionError

    @durable
    async def work() -> str:
        return add()

    async with Perdure(tmp_path / "p.db") as app:
        with pytest.raises(InvalidInput, match="outside a transaction"):
            await app.run("t", work)
        assert [one.state for one in await app.effects.of("t")] == ["failed"]


# ── SQLAlchemy ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R65")
@pytest.mark.parametrize("place", ["transaction.before_commit", "transaction.committed"])
async def test_an_sqlalchemy_transaction_that_was_cut_off_happens_once(
    base: Base, tmp_path: Path, monkeypatch: Any, place: str
) -> None:
    address = (
        base.place.replace("postgresql:", "postgresql+psycopg:") if base.is_postgres else f"sqlite:///{base.place}"
    )

    engine = sqlalchemy.create_engine(address)

    @transaction(engine)
    def add(connection: Any) -> str:
        connection.execute(sqlalchemy.text("INSERT INTO orders VALUES ('tea')"))
        return "added"

    @durable
    async def work() -> str:
        return add()

    Places(monkeypatch).at(place, raising(Died()))
    async with Perdure(tmp_path / "p.db") as app:
        assert isinstance(await ended(app, "t", work), Died)
        assert await app.run("t", work) == "added"
    assert base.orders() == ["tea"]
    engine.dispose()


async def test_the_store_is_refused_through_sqlalchemy_too_and_what_is_no_connection(tmp_path: Path) -> None:
    ours, user = (sqlalchemy.create_engine(f"sqlite:///{tmp_path}/{name}.db") for name in ("p", "user"))
    opened = sqlite3.connect(tmp_path / "user.db", check_same_thread=False)
    refused: dict[str, Callable[[], Any]] = {
        "perdure's own store": ours.connect,
        "cannot use a sqlalchemy": sessionmaker(user),
        "cannot use a sqlite3.Cursor": opened.cursor,
    }
    async with Perdure(tmp_path / "p.db") as app:
        for number, (why, open_it) in enumerate(refused.items()):

            @transaction(open_it, name=f"add {number}")
            def add(connection: Any) -> None:
                raise AssertionError

            @durable(name=f"work {number}")
            async def work(add: Any = add) -> None:
                add()

            with pytest.raises(InvalidInput, match=why):
                await app.run(f"t{number}", work)
    opened.close()
    ours.dispose()
    user.dispose()


# ── the same for any effect that is sent again ───────────────────────────────────────────────────


@pytest.mark.req("R64")
async def test_a_second_sending_that_failed_says_nothing_about_the_first(quick_url: str) -> None:
    keys: list[str] = []

    @effect(keyed=True, failed_on=[ConnectionRefusedError], retry=Retry(3, wait=timedelta(0), new_key=True))
    async def charge() -> str:
        keys.append(idempotency_key())
        if len(keys) == 1:
            raise TimeoutError("it was charged, and the answer was lost")
        raise ConnectionRefusedError

    @durable
    async def checkout() -> str:
        return await charge()

    async with Perdure(quick_url) as app:
        assert isinstance(await until_paused(app, "t", checkout), Pause)
        assert [one.state for one in await app.effects.of("t")] == ["uncertain"]
    assert len(keys) == 3 and len(set(keys)) == 1


@pytest.mark.req("R64")
async def test_a_second_sending_that_knows_that_it_did_not_happen_settles_it(quick_url: str) -> None:
    tries: list[int] = []

    @effect(keyed=True, retry=AT_ONCE)
    async def charge() -> str:
        tries.append(1)
        raise TimeoutError if len(tries) == 1 else DidNotHappen("no such charge")

    @durable
    async def checkout() -> str:
        return await charge()

    async with Perdure(quick_url) as app:
        with pytest.raises(DidNotHappen):
            await app.run("t", checkout)
        assert [one.state for one in await app.effects.of("t")] == ["failed"]


async def test_what_was_cancelled_and_rolled_back_is_not_asked_about(base: Base, tmp_path: Path) -> None:
    begun = asyncio.Event()

    @transaction(base.open)
    async def add(connection: Any, name: str) -> str:
        connection.execute(base.insert, (name,))
        begun.set()
        await asyncio.get_running_loop().create_future()
        return name

    @durable
    async def work() -> str:
        adding = asyncio.create_task(add("tea"))
        await begun.wait()
        adding.cancel()
        await asyncio.wait([adding])
        return "without tea"

    async with Perdure(tmp_path / "p.db") as app:
        assert await app.run("t", work) == "without tea"
        assert [one.state for one in await app.effects.of("t")] == ["failed"]
        assert await app.effects.list() == []
    assert base.orders() == []
