"""Engines for the contract suite: every test that asks for `engine` runs on each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perdure._store import Committer, Engine
from perdure._store.memory import MemoryEngine
from perdure._store.postgres import PostgresEngine
from perdure._store.sqlite import SqliteEngine
from tests.store.kit import Hand
from tests.store.watched import Attempt, Watched
from tests.support.fixtures import postgres_database
from tests.support.proxy import Proxy, proxy_to

ENGINES = ("memory", "sqlite", "postgres")


@pytest.fixture(scope="session")
def postgres_store() -> Iterator[str]:
    """The address of one PostgreSQL store for all tests of this worker; see `emptied`."""
    with postgres_database() as url:
        yield url


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    """A way to an empty PostgreSQL database that can be cut."""
    with proxy_to(postgres_url) as between:
        yield between


@pytest.fixture
def open_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Engine]]:
    """Open this test's store of a kind, empty at first; opened again, it is the same store."""
    seen: set[str] = set()
    with contextlib.ExitStack() as opened:

        def open_one(kind: str) -> Engine:
            engine: Engine
            if kind == "memory":
                engine = MemoryEngine(str(tmp_path))
            elif kind == "sqlite":
                engine = SqliteEngine(tmp_path / "store.db")
            else:
                url = request.getfixturevalue("postgres_store")
                if kind not in seen:
                    empty(url)
                engine = PostgresEngine(url)
            seen.add(kind)
            opened.callback(engine.close)
            return engine

        yield open_one


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, open_engine: Callable[[str], Engine]) -> Engine:
    """An empty store."""
    return open_engine(request.param)


@pytest.fixture
def second(engine: Engine, open_engine: Callable[[str], Engine]) -> Engine:
    """The same store, opened once more, as another process would."""
    return open_engine(engine.kind)


@pytest.fixture
def crowd(engine: Engine, open_engine: Callable[[str], Engine]) -> list[Hand]:
    """Processes at the same store; an engine commits for one caller at a time, so each has its own."""
    return [Hand(open_engine(engine.kind), f"w{number}") for number in range(5)]


@pytest.fixture
def hand(engine: Engine) -> Hand:
    """A process at an empty store."""
    return Hand(engine)


@pytest.fixture
def other(engine: Engine) -> Hand:
    """Another process at the same store."""
    return Hand(engine, "w2")


def empty(url: str) -> None:
    """Remove every row of a PostgreSQL store but what it knows of its migrations."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT schemaname, tablename FROM pg_tables WHERE tableowner = current_user")
        tables = [row for row in found if row[0] not in ("pg_catalog", "information_schema") and row[1] != "migrations"]
        for schema, name in tables:
            connection.execute(sql.SQL("DELETE FROM {}.{}").format(sql.Identifier(schema), sql.Identifier(name)))


@pytest.fixture
def watched() -> Watched:
    """An engine in memory whose commits can be held up, counted and failed."""
    return Watched()


@pytest.fixture
def committer(watched: Watched) -> Iterator[Committer]:
    committer = Committer(watched)
    yield committer
    watched.open_gate()
    committer.close()


@pytest.fixture
def attempt(committer: Committer, watched: Watched) -> Attempt:
    return Attempt(committer, watched.inner)
