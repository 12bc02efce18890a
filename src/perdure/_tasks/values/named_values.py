"""Values under a name, kept beside tasks: schedules, triggers, events that came in, and a task's frames.

A value belongs to a task or to a namespace, has a kind and a key, and counts its versions. It is changed only from the
version that was read, so when two processes change it at once, one is told to look again. `due_at` is when a worker
should look at it; each kind defines what that means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Generic, TypeVar

from msgspec import Struct

from perdure._ground.encoding.codec import stored_json
from perdure._store import Store, ValueRow

T = TypeVar("T")
_FOREVER_MS = 1 << 60


class Kept(Struct, Generic[T], frozen=True):
    """One value as it was read."""

    key: str
    version: int
    due_at: int | None  # milliseconds, as the store has it
    changed_at: int
    author: Mapping[str, Any]
    value: T


class Shelf(Generic[T]):
    """The values of one kind, of a task or (by default) of the namespace."""

    def __init__(self, store: Store, kind: str, as_type: type[T], *, task: tuple[str, str] | None = None) -> None:
        """`task` is the id and the uid of the task the values belong to."""
        self._store, self._kind, self._as_type = store, kind, as_type
        self._owner = task[1] if task else f"namespace:{store.namespace}"
        # A task's values are written in order with what else is written of it.
        self._place = task[0] if task else f"~{kind}"

    async def get(self, key: str) -> Kept[T] | None:
        row = await self._store.row(ValueRow, "get_value", uid=self._owner, kind=self._kind, key=key)
        return self._kept(row) if row is not None else None

    async def all(self, *, after: str = "", limit: int = 10_000) -> list[Kept[T]]:
        asked = {"uid": self._owner, "kind": self._kind, "after": after, "limit": limit}
        return [self._kept(row) for row in await self._store.rows(ValueRow, "list_values", **asked)]

    async def due(self, by_ms: int, *, limit: int = 100) -> list[Kept[T]]:
        """The values that are due, longest due first."""
        asked = {"uid": self._owner, "kind": self._kind, "by": by_ms, "limit": limit}
        return [self._kept(row) for row in await self._store.rows(ValueRow, "due_values", **asked)]

    async def until_next(self, now: int) -> timedelta | None:
        """The time from this moment until the first value is due; None if none ever is."""
        asked = {"uid": self._owner, "kind": self._kind, "by": _FOREVER_MS, "limit": 1}
        rows = await self._store.rows(ValueRow, "due_values", **asked)
        return timedelta(milliseconds=(rows[0].due_at or 0) - now) if rows else None

    async def add(self, key: str, value: T, *, due_at: int | None = None) -> bool:
        """Keep it under a new key; False when the key is taken. Durable when this returns."""
        return await self._write("add_value", key, self._columns(value, due_at)) is not None

    async def change(self, kept: Kept[Any], value: T, *, due_at: int | None = None) -> bool:
        """Replace the value; False if another process has changed it since it was read."""
        columns = {**self._columns(value, due_at), "version": kept.version}
        return await self._write("change_value", kept.key, columns) is not None

    async def drop(self, kept: Kept[Any]) -> bool:
        return await self._write("drop_value", kept.key, {"version": kept.version}) is not None

    async def update(self, key: str, make: Callable[[T | None], tuple[T, int | None]]) -> T:
        """Change a value based on its present content, however many others do so too. `make` can be called again."""
        while True:
            kept = await self.get(key)
            value, due_at = make(kept.value if kept else None)
            done = self.add(key, value, due_at=due_at) if kept is None else self.change(kept, value, due_at=due_at)
            if await done:
                return value

    def _columns(self, value: T, due_at: int | None) -> dict[str, Any]:
        store = self._store
        sealed = store.seal(self._owner, self._kind, value, self._as_type)
        return {"value": sealed, "due_at": due_at, "at": store.clock.now_ms(), "author": store.presence.author()}

    async def _write(self, verb: str, key: str, columns: dict[str, Any]) -> Any:
        params = {"kind": self._kind, "key": key, **columns}
        place = self._place if not self._place.startswith("~") else f"{self._place}/{key}"
        return await self._store.verb(verb, self._owner, params, key=place)

    def _kept(self, row: ValueRow) -> Kept[T]:
        value: T = self._store.unseal(self._owner, self._kind, row.value, self._as_type)
        return Kept(
            row.key,
            row.version,
            row.due_at,
            row.changed_at,
            stored_json(row.author, f"the author of value {row.key!r}", dict),
            value,
        )
