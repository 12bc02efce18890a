"""A marker through a SQLAlchemy connection, blocking or async, to any database.

Owns SQLAlchemy's peculiarities: a transaction that it considers over while the driver is still inside it, and one that
it considers open while the driver commits each statement by itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from perdure._durable.databases.commit_markers import (
    CommitMarker,
    FoundMarker,
    found_in,
    plain,
    refuse_if_inside,
    refuse_store_among,
)
from perdure.errors import InvalidInput


class Sqlalchemy:
    """A MarkedConnection (commit_markers.py)."""

    def __init__(self, connection: Any, store_path: str | None) -> None:
        import sqlalchemy as sa

        self._connection, self._store_path = connection, store_path
        self._transaction: Any = None
        self._table = sa.Table(
            "perdure_markers",
            sa.MetaData(),
            sa.Column("key", sa.String(64), primary_key=True),
            sa.Column("task", sa.String(64), nullable=False),
            sa.Column("path", sa.Text, nullable=False),
            sa.Column("digest", sa.LargeBinary, nullable=False),
            sa.Column("result", sa.LargeBinary),
            sa.Column("at", sa.BigInteger, nullable=False),
        )

    async def begin(self) -> None:
        refuse_if_inside(self._connection, bool(self._connection.in_transaction()))
        try:
            await self._make_table()
        except InvalidInput:
            raise
        except Exception:
            # When two processes create it at once, one can fail; the second look finds the table.
            await self._make_table()
        self._transaction = await self._begun()

    async def _make_table(self) -> None:
        """In its own transaction: it does not block the user's, and stays when that is rolled back."""
        transaction = await self._begun()
        try:
            if self._store_path is not None and self._connection.dialect.name == "sqlite":
                databases = await plain(self._connection.exec_driver_sql("PRAGMA database_list"))
                refuse_store_among(databases.all(), self._store_path)
            await self._sync(lambda connection: self._table.create(connection, checkfirst=True))
        except BaseException:
            await plain(transaction.rollback())
            raise
        await plain(transaction.commit())

    async def _begun(self) -> Any:
        begun = self._connection.begin()
        return await begun if inspect.isawaitable(begun) else begun

    async def claim(self, marker: CommitMarker) -> FoundMarker | None:
        found = await self._find(marker)
        if found is not None:
            return found
        table = self._table
        values = {"key": marker.key, "task": marker.task, "path": marker.path, "digest": marker.digest, "at": marker.at}
        await plain(self._connection.execute(table.insert().values(**values)))
        driver = await self._sync(lambda connection: connection.connection.driver_connection)
        if not _is_inside(driver):
            await plain(self._connection.execute(table.delete().where(table.c.key == marker.key)))
            raise InvalidInput(
                f"{self._connection.engine!r} commits each statement by itself, so none can be marked",
                kept="nothing was written",
                do='give @transaction an engine without isolation_level="AUTOCOMMIT"',
            )
        return None

    async def _find(self, marker: CommitMarker) -> FoundMarker | None:
        import sqlalchemy as sa

        asked = sa.select(self._table.c.result).where(self._table.c.key == marker.key)
        return found_in((await plain(self._connection.execute(asked))).all())

    async def _sync(self, act: Callable[[Any], Any]) -> Any:
        """Call something that SQLAlchemy offers only for blocking connections."""
        run_sync = getattr(self._connection, "run_sync", None)
        return act(self._connection) if run_sync is None else await run_sync(act)

    def is_inside(self) -> bool:
        return self._transaction is not None and bool(self._transaction.is_active)

    async def finish(self, marker: CommitMarker, result: bytes) -> bool:
        table = self._table
        changed = table.update().where(table.c.key == marker.key).values(result=result)
        return bool((await plain(self._connection.execute(changed))).rowcount)

    async def commit(self) -> None:
        await plain(self._transaction.commit())
        self._transaction = None

    async def roll_back(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None and transaction.is_active:
            await plain(transaction.rollback())
        elif transaction is not None and not self._connection.closed:
            # The function has ended the transaction and may have begun another. Or its COMMIT was refused: SQLAlchemy
            # considers it over, but on SQLite the driver is still inside it, and so would be the next user of the
            # connection.
            await plain(self._connection.rollback())
            await self._sync(lambda connection: connection.connection.rollback())


def _is_inside(driver: Any) -> bool:
    """True if the driver's connection, which has just written a row, is inside a transaction."""
    if hasattr(driver, "is_in_transaction"):  # asyncpg
        return bool(driver.is_in_transaction())
    if hasattr(driver, "in_transaction"):  # sqlite3, aiosqlite
        return bool(driver.in_transaction)
    status = getattr(getattr(driver, "info", None), "transaction_status", None)  # psycopg, psycopg2
    return status is None or int(status) != 0
