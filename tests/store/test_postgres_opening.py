"""Opening a store on PostgreSQL: what is made, what is refused, and what is never shown."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import psycopg
import pytest

import perdure
from perdure._store import Again
from perdure._store.migrate import load
from perdure._store.postgres import PostgresEngine
from perdure._store.postgres import error_translation as trouble
from perdure._store.sql import split
from perdure._store.sqlite import SqliteEngine
from perdure.errors import (
    InvalidInput,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreNewer,
    StoreRefused,
    StoreUnavailable,
    StoreUnreachable,
)
from tests.store.kit import NAMESPACES, UIDS, Hand, dump, listing
from tests.support.postgres import fresh_database
from tests.support.processes import Link, nursery

HERE = Path(perdure.__file__).parent / "_store" / "postgres"
SECRET = "s3cr%40t-word"


@pytest.fixture
def engine(postgres_url: str) -> Any:
    engine = PostgresEngine(postgres_url)
    yield engine
    engine.close()


# ── what is made ─────────────────────────────────────────────────────────────────────────────────


def test_reading_an_empty_database_answers_nothing_and_makes_nothing(engine: PostgresEngine, postgres_url: str) -> None:
    assert engine.query("list_tasks", listing()) == []
    assert engine.bytes_used() == 0
    engine.shrink()
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regnamespace('perdure')").fetchone() == (None,)


def test_the_first_write_makes_the_tables(engine: PostgresEngine) -> None:
    assert Hand(engine).register() == ("w1",)
    assert [row[0] for row in engine.query("read_workers", {})] == ["w1"]
    engine.shrink()
    assert engine.bytes_used() > 0
    assert engine.damage() == []


def open_at_once(link: Link, url: str, worker: str) -> Any:
    engine = PostgresEngine(url)
    link.send(("said", "ready"))
    link.recv()
    return Hand(engine, worker).register()


def test_processes_that_open_an_empty_database_at_once_all_succeed(postgres_url: str) -> None:
    names = ["w1", "w2", "w3", "w4"]
    with nursery() as warm:
        children = [warm.start(open_at_once, postgres_url, name) for name in names]
        for child in children:
            assert child.heard() == "ready"
        for child in children:
            child.tell()
        assert [child.heard() for child in children] == [(name,) for name in names]


def form(url: str) -> list[Any]:
    """Every table, column, constraint and index of ours, as the catalogue has them."""
    columns = """
        SELECT relname, attnum, attname, format_type(atttypid, atttypmod), attnotnull, collname,
               pg_get_expr(adbin, adrelid)
        FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0
        LEFT JOIN pg_collation ON pg_collation.oid = attcollation
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE relnamespace = 'perdure'::regnamespace AND relkind = 'r' ORDER BY 1, 2"""
    indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'perdure' ORDER BY 1"
    constraints = """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'perdure'::regnamespace ORDER BY 1, 2"""
    others = """
        SELECT relname, relkind FROM pg_class
        WHERE relnamespace = 'perdure'::regnamespace AND relkind NOT IN ('r', 'i') ORDER BY 1"""
    with psycopg.connect(url) as connection:
        return [connection.execute(query).fetchall() for query in (columns, indexes, constraints, others)]


def test_the_migrations_make_what_the_schema_says(engine: PostgresEngine, postgres_url: str) -> None:
    Hand(engine).register()
    with fresh_database() as other:
        with psycopg.connect(other) as connection:
            for statement in split((HERE / "schema.sql").read_text()):
                connection.execute(statement.encode())
        assert form(postgres_url) == form(other)
    assert form(postgres_url)[3] == []  # no sequences, views or anything else


def test_a_store_of_an_earlier_release_is_brought_up_by_whoever_opens_it(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE SCHEMA perdure")
        connection.execute('CREATE TABLE perdure.migrations (name TEXT COLLATE "C" PRIMARY KEY, at BIGINT NOT NULL)')
        for statement in split((HERE / "migrations" / "0001_first.sql").read_text()):
            connection.execute(statement.encode())
        connection.execute("INSERT INTO perdure.migrations VALUES ('0001_first', 1)")
    engine = PostgresEngine(postgres_url)
    names = [row[0] for row in engine.query("read_migrations", {})]
    steps = load(HERE / "migrations")
    newest = max(step.number for step in steps)
    # What takes something away waits until the next release; earlier ones' removals are due now.
    assert names == sorted(step.name for step in steps if not (step.is_post and step.number == newest))
    engine.close()


def test_a_role_without_the_right_to_create_schemas_can_use_one_that_is_there(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        role = admin.execute("SELECT 'r_' || current_database()").fetchone()[0]  # type: ignore[index]
        admin.execute(f"CREATE ROLE {role} LOGIN")
        admin.execute(f"CREATE SCHEMA perdure AUTHORIZATION {role}")
        engine = PostgresEngine(postgres_url.replace("postgres@", f"{role}@", 1))
        assert Hand(engine).register() == ("w1",)
        engine.close()
        admin.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def test_tables_taken_away_under_a_running_engine_are_reported(engine: PostgresEngine, postgres_url: str) -> None:
    hand = Hand(engine)
    hand.register()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP SCHEMA perdure CASCADE")
    with pytest.raises(StoreUnavailable, match="lost tables"):
        hand.register()
    assert engine.query("read_workers", {}) == []


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


def test_a_store_made_by_a_newer_perdure_is_left_untouched(engine: PostgresEngine, postgres_url: str) -> None:
    Hand(engine).register()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("INSERT INTO perdure.migrations VALUES ('9000_tomorrow', 1)")
    older = PostgresEngine(postgres_url)
    with pytest.raises(StoreNewer, match="9000_tomorrow"):
        older.query("read_workers", {})
    with pytest.raises(StoreNewer):
        Hand(older).do("beat", worker="w1")
    older.close()
    assert [row[1] for row in engine.query("read_workers", {})] == [0]


def test_a_server_that_is_too_old_is_refused(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", 130_011)
    with pytest.raises(StoreRefused, match="PostgreSQL 13"):
        engine.query("read_workers", {})
    with pytest.raises(StoreRefused, match="14 or newer"):
        Hand(engine).register()


def test_without_psycopg_it_is_said_what_to_install() -> None:
    code = "import sys; sys.modules['psycopg'] = None\nfrom perdure._store.postgres import PostgresEngine"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert "StoreUnavailable" in ended.stderr and "pip install 'perdure[postgres]'" in ended.stderr


def test_what_the_server_says_is_told_in_our_words() -> None:
    kinds = {
        "40P01": Again,
        "40001": Again,
        "55P03": StoreBusy,
        "57014": StoreBusy,
        "53100": StoreFull,
        "XX001": StoreDamaged,
        "42P01": StoreUnavailable,
        "42501": StoreUnavailable,
        "22021": StoreUnavailable,
    }
    for state, kind in kinds.items():
        error = psycopg.errors.lookup(state)("what it said\nLINE 1: details")
        told = trouble.in_our_words(error, "here", {})
        assert type(told) is kind
        assert "LINE 1" not in str(told)


# ── what is never shown ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "url, place",
    [
        (f"postgresql://ada:{SECRET}@db.example:5433/agents", "postgresql://ada@db.example:5433/agents"),
        (f"postgresql://db.example/agents?user=ada&password={SECRET}", "postgresql://ada@db.example/agents"),
        (f"postgresql://ada:{SECRET}@/agents?host=/run/pg", "postgresql://ada@/agents?host=/run/pg"),
        (f"postgresql://ada:{SECRET}@a,b/x?sslpassword={SECRET}", "postgresql://ada@a,b/x"),
        (f"postgresql://ada:{SECRET}@a:1,b:2/x", "postgresql://ada@a:1,b:2/x"),
    ],
)
def test_the_place_of_a_store_holds_no_password(url: str, place: str) -> None:
    assert PostgresEngine(url).place == place


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ada:{SECRET}@127.0.0.1:1/agents",
        f"postgresql://ada:{SECRET}@/agents?host=/nowhere",
        f"postgresql://ada:{SECRET}@127.0.0.1:1/agents?connect_timeout=soon",
        f"postgresql://ada:{SECRET}%zz@127.0.0.1:1/agents",
        f"postgresql://ada@127.0.0.1:1/agents?password={SECRET}&no_such={SECRET}",
    ],
)
def test_no_error_repeats_the_password(url: str) -> None:
    with pytest.raises((StoreUnreachable, InvalidInput)) as caught:
        PostgresEngine(url).query("read_workers", {})
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + str(vars(caught.value))
    assert "s3cr" not in told


# ── what comes back ──────────────────────────────────────────────────────────────────────────────


def test_rows_are_those_of_sqlite(engine: PostgresEngine, tmp_path: Path) -> None:
    dumps = []
    sqlite = SqliteEngine(tmp_path / "store.db")
    for one in (engine, sqlite):
        hand = Hand(one)
        epoch = hand.running(UIDS[0])
        hand.append(UIDS[0], epoch, 1, entry=b"\0\xff")
        hand.checkpoint(UIDS[0], epoch, 0, label="é", content=b"\0")
        hand.move(UIDS[0], "complete", epoch=epoch, result=b"\0done")
        dumps.append(dump(one))
    sqlite.close()
    assert dumps[0] == dumps[1]
    kinds = {type(value) for rows in dumps[0].values() for row in rows for value in row}
    assert kinds <= {int, str, bytes, bool, type(None)}


def test_a_namespace_never_shows_the_tasks_of_another(engine: PostgresEngine) -> None:
    hand = Hand(engine)
    for uid, namespace in zip(UIDS, NAMESPACES, strict=False):
        hand.create(uid, namespace=namespace)
    for uid, namespace in zip(UIDS, NAMESPACES, strict=False):
        assert [row[0] for row in engine.query("list_tasks", listing(namespace=namespace))] == [uid]
        assert [row[0] for row in engine.query("get_task", {"namespace": namespace, "id": "alpha"})] == [uid]


@pytest.mark.req("R112")
def test_the_server_asks_whether_the_machine_of_a_writer_is_still_there(postgres_url: str) -> None:
    """Else rows that were locked by half of a batch stay so for two hours after a power cut."""
    engine = PostgresEngine(postgres_url)
    connection = engine._open_writer()
    try:
        asked = "SELECT name FROM pg_settings WHERE name LIKE 'tcp_keepalives%' AND source = 'session' ORDER BY name"
        assert [name for (name,) in connection.execute(asked)] == [
            "tcp_keepalives_count",
            "tcp_keepalives_idle",
            "tcp_keepalives_interval",
        ]
    finally:
        connection.close()
        engine.close()
