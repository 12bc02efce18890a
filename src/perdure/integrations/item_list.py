"""A list of items in `app.storage`, such as the messages of a conversation. Several processes may add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import perdure
from perdure.errors import Conflict, NoTask
from perdure.memory import owner_prefix
from perdure.types import Delete, Put

if TYPE_CHECKING:
    from perdure.types import Storage

_MOST_CHANGES = 500


class ItemList:
    def __init__(self, storage: Storage, prefix: str) -> None:
        """Every key that begins with `prefix` belongs to the list."""
        self._storage, self._prefix = storage, prefix

    async def get(self, limit: int | None = None) -> list[Any]:
        """The items, or the newest of them, the oldest first."""
        if limit is not None and limit <= 0:
            return []
        found = await self._storage.scan(self._prefix, limit=limit, reverse=True)
        return [row.value["item"] for row in reversed(found)]

    async def add(self, items: Sequence[Any]) -> None:
        """Add all of the items, or none. Repeated under the same key of an effect, it adds nothing."""
        if not items:
            return
        once = _once()
        while True:
            newest = await self._storage.scan(self._prefix, limit=1, reverse=True)
            if once and await self._storage.get(once[0].key) is not None:
                return
            first = int(newest[0].key.rsplit("/", 1)[1]) + 1 if newest else 0
            rows = [Put(f"{self._prefix}{number:012}", {"item": item}, 0) for number, item in enumerate(items, first)]
            try:
                await self._storage.write([*rows, *once])
            except Conflict:  # another process added first
                continue
            return

    async def pop(self) -> Any:
        """Take the newest item; None if there is none."""
        while newest := await self._storage.scan(self._prefix, limit=1, reverse=True):
            try:
                await self._storage.delete(newest[0].key, seen=newest[0].version)
            except Conflict:
                continue
            return newest[0].value["item"]
        return None

    async def clear(self) -> None:
        keys = await self._storage.list(self._prefix)
        for start in range(0, len(keys), _MOST_CHANGES):
            await self._storage.write([Delete(key) for key in keys[start : start + _MOST_CHANGES]])


def _once() -> list[Put]:
    """The key that marks a call of the surrounding effect as made. It belongs to the task, so it is deleted with it."""
    here = perdure.current()
    if here is None or not here.is_body:
        return []
    try:
        key = perdure.idempotency_key()
    except NoTask:  # in a step, which may be repeated
        return []
    return [Put(f"{owner_prefix('execution', here.task_id)}added/{key}", True, 0)]
