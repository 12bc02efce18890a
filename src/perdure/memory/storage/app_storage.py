"""The adapter on a perdure store: SQLite or PostgreSQL, sealed like everything else in it.

`app.memory` uses it on the app's own store. `app.storage` (key_values.py) sees the same values.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perdure._ground.config import find_address
from perdure._ground.secrets.crypto import KeyRing
from perdure._store import Store, share
from perdure._tasks import memory_values as memories
from perdure.memory.storage.adapter import task_of
from perdure.memory.storage.key_values import Storage


class AppStorage(Storage):
    """Values in the table of a store. Durable when a call returns."""

    async def set(self, key: str, value: Any) -> None:
        await self._put(key, value, None, None)

    async def swap(self, key: str, value: Any, seen: int | None, *, expires_at: int | None = None) -> int | None:
        """As `put`, for layers: None when the stored version is no longer `seen`."""
        return await self._put(key, value, seen, expires_at)

    @property
    def committer(self) -> object:
        """The committer of the store, by which one store is told from another."""
        return self._store.committer

    def put_params(self, key: str, value: Any, seen: int | None, expires_at: int | None) -> dict[str, Any]:
        """The parameters of the store's verbs that keep this value."""
        owner = task_of(memories.check_key(key))
        return memories.put_params(self._store, key, value, owner=owner, seen=seen, expires_at=expires_at)

    async def set_aside(self, key: str, aside: str) -> int | None:
        """Keep the bytes of a damaged value under another key; returns the version to pass to `swap`."""
        found = await memories.damaged(self._store, key)
        if found is None:
            return None
        await self.set(f"{aside}.{found.version}", found.value)
        return found.version


class SqliteStorage(AppStorage):
    """Values in a SQLite file of their own."""

    def __init__(self, path: str | Path, *, key: str | None = None, namespace: str = "default") -> None:
        super().__init__(Store(share(find_address(Path(path).absolute())), KeyRing.load(key), namespace))

    async def close(self) -> None:
        await self._store.close()


class PostgresStorage(AppStorage):
    """Values in a PostgreSQL database, in the schema `perdure`."""

    def __init__(self, dsn: str, *, key: str | None = None, namespace: str = "default") -> None:
        super().__init__(Store(share(find_address(dsn)), KeyRing.load(key), namespace))

    async def close(self) -> None:
        await self._store.close()
