"""The adapter on a perdure store: SQLite or PostgreSQL, sealed like everything else in it.

`app.memory` uses it on the app's own store. There a write for a task is fenced: while this process works on
the task, it carries the lease's epoch, and a process that has lost the lease writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from perdure._ground.config import find_address
from perdure._ground.crypto import KeyRing
from perdure._store import Fence, Store, share
from perdure._tasks import memory_values as memories
from perdure.memory.storage.adapter import Loaded, task_of


class AppStorage:
    """Values in the table of a store. Durable when a call returns."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._fences: dict[str, Fence] = {}  # by task id: the last lease this process was seen to have

    async def get(self, key: str) -> Any | None:
        found = await memories.get(self._store, key)
        return None if found is None else found.value

    async def get_many(self, keys: Iterable[str]) -> dict[str, Any]:
        found = {key: await memories.get(self._store, key) for key in dict.fromkeys(keys)}
        return {key: one.value for key, one in found.items() if one is not None}

    async def set(self, key: str, value: Any) -> None:
        await self._put(key, value, None, None)

    async def delete(self, key: str) -> None:
        await memories.drop(self._store, key)

    async def list(self, prefix: str) -> Sequence[str]:
        return await memories.keys(self._store, prefix)

    async def load(self, key: str) -> Loaded | None:
        found = await memories.get(self._store, key)
        return None if found is None else Loaded(found.value, found.version)

    async def swap(self, key: str, value: Any, seen: int | None, *, expires_at: int | None = None) -> int | None:
        return await self._put(key, value, seen, expires_at)

    @property
    def committer(self) -> object:
        """By which one store is told from another."""
        return self._store.committer

    def put_params(self, key: str, value: Any, seen: int | None, expires_at: int | None) -> dict[str, Any]:
        """What the store's verbs take that keep this value."""
        owner = task_of(memories.check_key(key))
        return memories.put_params(self._store, key, value, owner=owner, seen=seen, expires_at=expires_at)

    async def set_aside(self, key: str, aside: str) -> int | None:
        """Keep the bytes of a value that is damaged under another key; the version to swap it for."""
        found = await memories.damaged(self._store, key)
        if found is None:
            return None
        await self.set(f"{aside}.{found.version}", found.value)
        return found.version

    async def _put(self, key: str, value: Any, seen: int | None, expires_at: int | None) -> int | None:
        owner = task_of(memories.check_key(key))
        fence = await self._fence(owner) if owner else None
        return await memories.put(self._store, key, value, owner=owner, seen=seen, expires_at=expires_at, fence=fence)

    async def _fence(self, task_id: str) -> Fence | None:
        """The fence of this process's attempt at the task; None when it makes none, or has ended it itself.

        Raises:
            LeaseLost: it made one, and lost its lease.
        """
        fence = await memories.fence_of(self._store, task_id)
        if fence is not None:
            self._fences[task_id] = fence
        elif (former := self._fences.get(task_id)) is not None:
            former.check()
        return fence


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
