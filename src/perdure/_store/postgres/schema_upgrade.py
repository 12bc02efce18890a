"""The schema `perdure` of a database: whether it is there, and bringing it to the form we know."""

from __future__ import annotations

from pathlib import Path

from perdure._ground import crash_points as crash
from perdure._store import migrate
from perdure._store.postgres.connector import Connection
from perdure._store.sql import split

_MIGRATIONS = Path(__file__).parent / "migrations"
# "perdure" as a number: only the lock of whoever migrates a perdure has it.
_LOCK = int.from_bytes(b"perdure\0")

# A migration may take long, and whoever comes second waits for it.
_SETTINGS = """
    SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '60s', true),
           set_config('synchronous_commit', 'on', true)
"""
_APPLIED = "SELECT name FROM perdure.migrations"
_NOW_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"


def is_there(connection: Connection) -> bool:
    row = connection.execute("SELECT to_regclass('perdure.migrations') IS NOT NULL").fetchone()
    return row is not None and bool(row[0])


def bring_up(connection: Connection, place: str) -> None:
    """Make the schema, or what of it is missing; of several processes that try, one does it and all succeed.

    Raises:
        StoreNewer: the database has had a migration we do not know; it was not touched.
    """
    if is_there(connection) and not _pending(connection, place):
        return
    with connection.transaction():
        connection.execute(_SETTINGS)
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        _make_schema(connection)
        for step in _pending(connection, place):
            for statement in split(step.script):
                connection.execute(statement.encode())
            connection.execute(
                f"INSERT INTO perdure.migrations (name, at) VALUES (%s, {_NOW_MS})",  # noqa: S608
                (step.name,),
            )
        crash.place("postgres.before_migrated")


def _make_schema(connection: Connection) -> None:
    # Not IF NOT EXISTS: that asks for the right to create one, even where an administrator has made it.
    row = connection.execute("SELECT to_regnamespace('perdure') IS NULL").fetchone()
    if row is not None and row[0]:
        connection.execute("CREATE SCHEMA perdure")
    connection.execute(
        'CREATE TABLE IF NOT EXISTS perdure.migrations (name TEXT COLLATE "C" PRIMARY KEY, at BIGINT NOT NULL)'
    )


def _pending(connection: Connection, place: str) -> list[migrate.Migration]:
    applied = {name for (name,) in connection.execute(_APPLIED).fetchall()}
    return migrate.pending(migrate.load(_MIGRATIONS), applied, place)
