"""A marker row in the user's own database, written in the same commit as an effect. It proves that the effect happened.

One table, `perdure_markers`: the effect's key, its task, path and digest, and its result. The marker is inserted at the
beginning of the transaction, under its primary key. So even when two attempts both believe they are alive, only one
commits: the other waits for it and then finds its marker.

Owns the differences between drivers: psycopg (blocking and async), sqlite3, apsw; sqlalchemy_markers.py has SQLAlchemy.
A driver is recognised by its connection's class; none is imported here before the user imports it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from msgspec import Struct

from perdure.errors import InvalidInput

_COLUMNS = "key, task, path, digest, result, at"
_POSTGRES = """CREATE TABLE IF NOT EXISTS perdure_markers (
  key text PRIMARY KEY, task text NOT NULL, path text NOT NULL, digest bytea NOT NULL, result bytea, at bigint NOT NULL
)"""
_SQLITE = """CREATE TABLE IF NOT EXISTS perdure_markers (
  key TEXT PRIMARY KEY, task TEXT NOT NULL, path TEXT NOT NULL, digest BLOB NOT NULL, result BLOB, at INTEGER NOT NULL
)"""


class CommitMarker(Struct, frozen=True):
    """The row that is written beside the effect."""

    key: str
    task: str
    path: str
    digest: bytes
    at: int


class FoundMarker(Struct, frozen=True):
    """A marker that was already there. Without a result, the function has ended the transaction itself."""

    result: bytes | None


class MarkedConnection(Protocol):
    """A connection, as a transaction with a marker needs it."""

    async def begin(self) -> None:
        """Open a transaction. A connection that is already inside one is refused and left as it is."""
        ...

    async def claim(self, marker: CommitMarker) -> FoundMarker | None:
        """Insert the marker without its result, or return the one that exists."""
        ...

    def is_inside(self) -> bool:
        """True if the transaction is certainly still open; the function may have ended it."""
        ...

    async def finish(self, marker: CommitMarker, result: bytes) -> bool:
        """Store the result in the marker. Returns False when the marker was lost with its transaction."""
        ...

    async def commit(self) -> None: ...

    async def roll_back(self) -> None:
        """Leave no transaction open, even after a COMMIT that was refused."""
        ...


_DRIVERS = {"psycopg", "psycopg_pool", "sqlite3", "_sqlite3", "apsw", "sqlalchemy"}
SQLITES = {"sqlite3", "_sqlite3", "apsw"}


def driver_of(thing: Any) -> str:
    """The driver of an object; a user's subclass of a driver's class counts as the driver's."""
    homes = (cls.__module__.partition(".")[0] for cls in type(thing).__mro__)
    return next((home for home in homes if home in _DRIVERS), "")


async def plain(value: Any) -> Any:
    """The value itself, whether the driver is blocking or async."""
    return await value if inspect.isawaitable(value) else value


def refuse_if_inside(connection: Any, is_inside: bool) -> None:
    """Raises InvalidInput for a connection inside a transaction."""
    if is_inside:
        raise InvalidInput(
            f"{connection!r} is already inside a transaction, which perdure must not end",
            kept="nothing was written",
            do="commit or roll back first, or give @transaction a connection of its own",
        )


def found_in(rows: Sequence[Any]) -> FoundMarker | None:
    """The marker that these rows of results contain."""
    return FoundMarker(bytes(rows[0][0]) if rows[0][0] is not None else None) if rows else None


# ── psycopg ──────────────────────────────────────────────────────────────────────────────────────

_made: set[tuple[Any, ...]] = set()  # databases that are known to have the table


class Psycopg:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._block: Any = None

    async def begin(self) -> None:
        connection = self._connection
        if connection.closed:
            raise InvalidInput(
                f"{connection!r} is closed",
                kept="nothing was written",
                do="give @transaction a pool, or a function that opens a connection: both give a new one next time",
            )
        refuse_if_inside(connection, int(connection.info.transaction_status) != 0)
        if self._database() not in _made:
            await self._make_table()
            _made.add(self._database())
        # Inside this block, psycopg refuses a commit() by the user's function.
        self._block = connection.transaction()
        await self._enter()

    def _database(self) -> tuple[Any, ...]:
        info = self._connection.info
        return (info.host, info.port, info.dbname)

    async def _make_table(self) -> None:
        rows = await self._rows("SELECT to_regclass('perdure_markers') IS NOT NULL")
        if not rows[0][0]:
            # When two processes create it at once, IF NOT EXISTS can still fail for one of them.
            try:
                await plain(self._connection.execute(_POSTGRES))
            except Exception:
                await plain(self._connection.rollback())
                if not (await self._rows("SELECT to_regclass('perdure_markers') IS NOT NULL"))[0][0]:
                    raise
        if not self._connection.autocommit:
            await plain(self._connection.commit())

    async def _enter(self) -> None:
        enter = getattr(self._block, "__aenter__", None) or self._block.__enter__
        await plain(enter())

    async def _leave(self, error: BaseException | None) -> None:
        leave = getattr(self._block, "__aexit__", None) or self._block.__exit__
        block, self._block = self._block, None
        del block
        await plain(leave(type(error) if error else None, error, None))

    async def claim(self, marker: CommitMarker) -> FoundMarker | None:
        import psycopg

        try:
            made = await self._insert(marker)
        except psycopg.errors.UndefinedTable:
            # The table was dropped meanwhile, or this connection has another search path.
            _made.discard(self._database())
            await self.roll_back()
            await self.begin()
            made = await self._insert(marker)
        return None if made else (await self._find(marker) or FoundMarker(None))

    async def _insert(self, marker: CommitMarker) -> list[Any]:
        return await self._rows(
            f"INSERT INTO perdure_markers ({_COLUMNS}) VALUES (%s, %s, %s, %s, NULL, %s) "  # noqa: S608
            "ON CONFLICT (key) DO NOTHING RETURNING key",
            (marker.key, marker.task, marker.path, marker.digest, marker.at),
        )

    async def _find(self, marker: CommitMarker) -> FoundMarker | None:
        return found_in(await self._rows("SELECT result FROM perdure_markers WHERE key = %s", (marker.key,)))

    def is_inside(self) -> bool:
        return int(self._connection.info.transaction_status) != 0

    async def finish(self, marker: CommitMarker, result: bytes) -> bool:
        text = "UPDATE perdure_markers SET result = %s WHERE key = %s RETURNING key"
        return bool(await self._rows(text, (result, marker.key)))

    async def commit(self) -> None:
        await self._leave(None)

    async def roll_back(self) -> None:
        if self._block is not None:
            import psycopg

            await self._leave(psycopg.Rollback())

    async def _rows(self, text: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return await psycopg_rows(self._connection, text, values)


async def psycopg_rows(connection: Any, text: str, values: tuple[Any, ...] = ()) -> list[Any]:
    """The rows of a statement as tuples, whatever row factory the user's connection has."""
    import psycopg.rows

    cursor = connection.cursor(row_factory=psycopg.rows.tuple_row)
    await plain(cursor.execute(text, values))
    rows: list[Any] = await plain(cursor.fetchall())
    return rows


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────


class Sqlite:
    def __init__(self, connection: Any, store_path: str | None) -> None:
        self._connection = connection
        # From Python 3.12 on, autocommit=False means that a transaction is always open.
        self._is_always_inside = getattr(connection, "autocommit", None) is False
        refuse_our_store(connection, store_path)

    async def begin(self) -> None:
        if not self._is_always_inside:
            refuse_if_inside(self._connection, self._connection.in_transaction)
        self._rows(_SQLITE)  # before the transaction: a rollback must remove the marker, not the table
        if self._is_always_inside:
            self._connection.commit()
        else:
            self._rows("BEGIN IMMEDIATE")

    async def claim(self, marker: CommitMarker) -> FoundMarker | None:
        found = await self._find(marker)
        if found is not None:
            return found
        values = (marker.key, marker.task, marker.path, marker.digest, marker.at)
        self._rows(f"INSERT INTO perdure_markers ({_COLUMNS}) VALUES (?, ?, ?, ?, NULL, ?)", values)  # noqa: S608
        return None

    async def _find(self, marker: CommitMarker) -> FoundMarker | None:
        return found_in(self._rows("SELECT result FROM perdure_markers WHERE key = ?", (marker.key,)))

    def is_inside(self) -> bool:
        return bool(self._connection.in_transaction) and not self._is_always_inside

    async def finish(self, marker: CommitMarker, result: bytes) -> bool:
        self._rows("UPDATE perdure_markers SET result = ? WHERE key = ?", (result, marker.key))
        return bool(self._rows("SELECT changes()")[0][0])

    async def commit(self) -> None:
        if self._connection.in_transaction:
            self._end("COMMIT")

    async def roll_back(self) -> None:
        if self._connection.in_transaction:
            self._end("ROLLBACK")

    def _end(self, how: str) -> None:
        if self._is_always_inside:
            self._connection.commit() if how == "COMMIT" else self._connection.rollback()
        else:
            self._rows(how)

    def _rows(self, text: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return sqlite_rows(self._connection, text, values)


def sqlite_rows(connection: Any, text: str, values: tuple[Any, ...] = ()) -> list[Any]:
    """The same for sqlite3 and apsw."""
    cursor = connection.cursor()
    if driver_of(connection) == "apsw":
        cursor.row_trace = lambda _, row: row
    else:
        cursor.row_factory = None
    return list(cursor.execute(text, values))


def refuse_our_store(connection: Any, store_path: str | os.PathLike[str] | None) -> None:
    """Raises InvalidInput if this is a connection of sqlite3 or apsw to perdure's own store."""
    if store_path is not None and driver_of(connection) in SQLITES:
        refuse_store_among(sqlite_rows(connection, "PRAGMA database_list"), str(store_path))


def refuse_store_among(databases: list[Any], store_path: str) -> None:
    """Raises InvalidInput if one of these rows of PRAGMA database_list is perdure's own store."""
    for _, _, file in databases:
        if file and os.path.exists(store_path) and os.path.exists(file) and os.path.samefile(file, store_path):
            raise InvalidInput(
                f"{file} is perdure's own store",
                kept="nothing was written to it",
                do="keep your data in another file: a second SQLite library on the store's file can destroy both",
            )


# ── opening a connection ─────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def opened(db: Any) -> AsyncIterator[Any]:
    """A connection: `db` itself, one of a pool or an engine, or one that `db()` opens, which is closed afterwards."""
    driver = driver_of(db)
    if driver == "psycopg_pool":
        async with _either(db.connection()) as connection:
            yield connection
    elif driver == "sqlalchemy" and hasattr(db, "connect"):
        async with _either(db.connect()) as connection:
            yield connection
    elif callable(db) and not hasattr(db, "execute"):
        connection = await plain(db())
        if not hasattr(connection, "execute") and hasattr(
            connection, "__aenter__" if _is_async(connection) else "__enter__"
        ):
            async with _either(connection) as inner:
                yield inner
            return
        try:
            yield connection
        finally:
            await plain(connection.close())
    else:
        yield db


def _is_async(context: Any) -> bool:
    return hasattr(context, "__aenter__")


@asynccontextmanager
async def _either(context: Any) -> AsyncIterator[Any]:
    """A blocking or an async context manager, as an async one."""
    if _is_async(context):
        async with context as value:
            yield value
    else:
        with context as value:
            yield value
