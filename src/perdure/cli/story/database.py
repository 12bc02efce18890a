"""The database of the story: PostgreSQL where there is one, else a SQLite file; the session of either is kept."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from perdure import Runtime

if TYPE_CHECKING:
    from perdure.cli.story.agent import Stage

HOLD = "10m"


class Database(Protocol):
    session: Any

    def transaction(self) -> AbstractAsyncContextManager[Any]: ...

    async def insert(self, number: int) -> None: ...

    async def has(self, number: int) -> bool: ...

    async def who(self) -> str:
        """What shows that it is the same one."""
        ...


async def open_database(stage: Stage, rt: Runtime) -> Database:
    if stage.dsn.startswith("postgresql:"):
        session = await rt.postgres("main", stage.dsn, hold=HOLD, rebuild="auto")
        return _Postgres(session, await session.connect(autocommit=not stage.in_transaction))
    return _Sqlite(await rt.sqlite("main", stage.dsn, hold=HOLD))


class _Postgres:
    def __init__(self, session: Any, connection: Any) -> None:
        self.session, self._connection = session, connection

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        found: AbstractAsyncContextManager[Any] = self._connection.transaction()
        return found

    async def insert(self, number: int) -> None:
        await self._connection.execute("INSERT INTO applied (n) VALUES (%s)", [number])

    async def has(self, number: int) -> bool:
        rows = await self._connection.execute("SELECT 1 FROM applied WHERE n = %s", [number])
        return await rows.fetchone() is not None

    async def who(self) -> str:
        return f"backend {self.session.backend_pid}"


class _Sqlite:
    def __init__(self, session: Any) -> None:
        self.session = session

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        found: AbstractAsyncContextManager[Any] = self.session.transaction()
        return found

    async def insert(self, number: int) -> None:
        await self.session.execute("INSERT INTO applied (n) VALUES (?)", (number,))

    async def has(self, number: int) -> bool:
        return bool(await self.session.fetch("SELECT 1 FROM applied WHERE n = ?", (number,)))

    async def who(self) -> str:
        return "one connection to a SQLite file"
