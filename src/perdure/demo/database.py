"""The database of the story: PostgreSQL where there is one, else a SQLite file; the session of either is kept."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from perdure.runtime import Runtime

HOLD = "10m"


class Database(Protocol):
    session: Any

    def transaction(self) -> AbstractAsyncContextManager[Any]: ...

    async def insert(self, number: int) -> None: ...

    async def shape(self) -> None:
        """Another isolation level than the usual one, and a setting."""
        ...

    async def who(self) -> str:
        """The proof that it is the same one."""
        ...

    async def inside(self) -> str:
        """The proof that this is the same transaction of the same session."""
        ...


async def open_database(rt: Runtime, dsn: str, *, in_transaction: bool) -> Database:
    if dsn.startswith("postgresql:"):
        session = await rt.postgres("main", dsn, hold=HOLD, rebuild="auto")
        return _Postgres(session, await session.connect(autocommit=not in_transaction), dsn)
    return _Sqlite(await rt.sqlite("main", dsn, hold=HOLD))


class _Postgres:
    def __init__(self, session: Any, connection: Any, dsn: str) -> None:
        self.session, self._connection, self._dsn = session, connection, dsn

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        found: AbstractAsyncContextManager[Any] = self._connection.transaction()
        return found

    async def insert(self, number: int) -> None:
        await self._connection.execute("INSERT INTO applied (n) VALUES (%s)", [number])

    async def shape(self) -> None:
        await self._connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await self._connection.execute("SET lock_timeout = '7s'")
        await self._connection.commit()

    async def who(self) -> str:
        return f"backend {self.session.backend_pid}"

    async def inside(self) -> str:
        asked = "SELECT current_setting('transaction_isolation'), current_setting('lock_timeout')"
        isolation, limit = await (await self._connection.execute(asked)).fetchone()
        number = await asyncio.to_thread(_transaction_of, self._dsn, self.session.backend_pid)
        return f"transaction {number}: {isolation}, lock_timeout {limit}"


def _transaction_of(dsn: str, backend: int) -> str:
    """The number of a backend's transaction, as the server tells it to another session."""
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as outside:
        found = outside.execute("SELECT backend_xid FROM pg_stat_activity WHERE pid = %s", [backend]).fetchone()
    return str(found[0]) if found else "gone"


class _Sqlite:
    def __init__(self, session: Any) -> None:
        self.session = session

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        found: AbstractAsyncContextManager[Any] = self.session.transaction()
        return found

    async def insert(self, number: int) -> None:
        await self.session.execute("INSERT INTO applied (n) VALUES (?)", (number,))

    async def shape(self) -> None:
        await self.session.execute("PRAGMA cache_size = -7000")

    async def who(self) -> str:
        return "one connection to a SQLite file"

    async def inside(self) -> str:
        pages = (await self.session.fetch("PRAGMA cache_size"))[0][0]
        return f"transaction: with cache_size {pages}"
