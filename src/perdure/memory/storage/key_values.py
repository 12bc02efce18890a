"""`app.storage`: values by key in a store, with versions and expiry, for sessions, caches and adapters.

A write for a task is fenced: while this process works on the task, it carries the lease's epoch, and a process that has
lost the lease writes nothing. Layers of memory reach the same values through app_storage.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from perdure._ground.durations import Duration, require_timedelta
from perdure._store import Fence, Store
from perdure._tasks import Stored
from perdure._tasks import memory_values as memories
from perdure.errors import Conflict, InvalidInput
from perdure.memory.storage.adapter import Loaded, task_of


class Put(NamedTuple):
    """Store a value, as `app.storage.put` does."""

    key: str
    value: Any
    seen: int | None = None
    expires: Duration | None = None


class Delete(NamedTuple):
    """Delete the value of a key, as `app.storage.delete` does."""

    key: str
    seen: int | None = None


class Storage:
    """Values by key in a store: JSON-like or bytes, sealed when the store has a key, durable when a call returns.

    A key is any text of at most 1,024 bytes. A value has a version, which rises by one with each write: give it back
    as `seen`, and the write is refused when another process wrote first (`seen=0`: there must not be a value yet).

    A key `execution/<task>/…` belongs to that task (`owner_prefix` writes its beginning). Its value is deleted with the
    task. While this process holds the task's lease, a write carries the lease, and a process that has lost it writes
    nothing. Inside a durable function, read and write in a step: nothing here is recorded by itself.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._fences: dict[str, Fence] = {}  # by task id: the last lease that this process was seen to hold

    async def get(self, key: str) -> Any | None:
        found = await memories.get(self._store, key)
        return None if found is None else found.value

    async def get_many(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values under these keys, in one query; keys without a value are left out."""
        return {found.key: found.value for found in await memories.get_many(self._store, keys)}

    async def put(self, key: str, value: Any, *, seen: int | None = None, expires: Duration | None = None) -> int:
        """Store a value, for good or until `expires`; returns its version.

        Raises:
            Conflict: the stored version is no longer `seen`; nothing was written.
            LeaseLost: the key is a task's, and another attempt has taken the task over; nothing was written.
        """
        version = await self._put(key, value, _checked(seen), self._end_of(expires))
        if version is None:
            raise _conflict(key)
        return version

    async def write(self, changes: Sequence[Put | Delete]) -> Sequence[int]:
        """Make all of these changes, or none. Returns the version of each value, 0 for a deleted key.

        Each key can occur once. All keys that belong to a task must belong to the same task.

        Raises:
            Conflict: one of the stored versions is no longer `seen`; nothing was written.
            LeaseLost: the keys are a task's, and another attempt has taken the task over; nothing was written.
        """
        made = [self._change(change) for change in changes]
        if not made:
            return []
        if len({change.key for change in made}) < len(made):
            raise InvalidInput("a key is in one write twice", do="name each key once, with its last value")
        owners = {change.owner for change in made} - {""}
        if len(owners) > 1:
            raise InvalidInput(
                f"one write is for keys of several tasks: {', '.join(sorted(owners))}",
                do="make one write for each task",
            )
        fence = await self._fence(owners.pop()) if owners else None
        versions = await memories.write(self._store, made, fence=fence)
        if versions is None:
            raise _conflict(next(change.key for change in made if change.seen is not None), len(made))
        return [version if change.is_kept else 0 for change, version in zip(made, versions, strict=True)]

    async def scan(
        self, prefix: str, *, after: str | None = None, limit: int | None = None, reverse: bool = False
    ) -> Sequence[Stored]:
        """The values whose keys begin with the prefix, with their keys and versions, in the order of the keys.

        One query reads them. `after` is the last key of the page before.  `reverse` begins with the greatest key.
        Without a limit it returns all of them.
        """
        if limit is not None and limit < 1:
            raise InvalidInput(f"limit is {limit!r}", do="pass a limit of 1 or more")
        return await memories.scan(self._store, prefix, after=after, limit=limit, reverse=reverse)

    async def delete(self, key: str, *, seen: int | None = None) -> bool:
        """Delete the value of a key; returns True if there was one.

        Raises:
            Conflict: the stored version is no longer `seen`; nothing was written.
            LeaseLost: the key is a task's, and another attempt has taken the task over; nothing was written.
        """
        change = self._change(Delete(key, seen))
        fence = await self._fence(change.owner) if change.owner else None
        versions = await memories.write(self._store, [change], fence=fence)
        if versions is None:
            raise _conflict(key)
        return versions[0] > 0

    async def list(self, prefix: str) -> Sequence[str]:
        """The keys that begin with the prefix, in their order."""
        return await memories.keys(self._store, prefix)

    async def load(self, key: str) -> Loaded | None:
        """The value with its version; None when there is none."""
        found = await memories.get(self._store, key)
        return None if found is None else Loaded(found.value, found.version)

    async def _put(self, key: str, value: Any, seen: int | None, expires_at: int | None) -> int | None:
        owner = task_of(memories.check_key(key))
        fence = await self._fence(owner) if owner else None
        return await memories.put(self._store, key, value, owner=owner, seen=seen, expires_at=expires_at, fence=fence)

    async def _fence(self, task_id: str) -> Fence | None:
        """The fence of this process's attempt at the task; None when this process is not working on the task, or has
        ended its attempt.

        Raises:
            LeaseLost: this process worked on the task and lost its lease.
        """
        former = self._fences.get(task_id)
        fence = await memories.fence_of(self._store, task_id, former)
        if fence is not None:
            self._fences[task_id] = fence
        elif former is not None:
            former.check()
        return fence

    def _change(self, change: Put | Delete) -> memories.Change:
        owner, seen = task_of(memories.check_key(change.key)), _checked(change.seen)
        if isinstance(change, Delete):
            return memories.Change(change.key, owner, is_kept=False, seen=seen)
        return memories.Change(change.key, owner, change.value, seen=seen, expires_at=self._end_of(change.expires))

    def _end_of(self, expires: Duration | None) -> int | None:
        length = require_timedelta("expires", expires, is_positive=True)
        return None if length is None else self._store.clock.now_ms() + length // timedelta(milliseconds=1)


def _checked(seen: int | None) -> int | None:
    if seen is not None and (type(seen) is not int or seen < 0):
        raise InvalidInput(f"seen is {seen!r}", do="give the version that was read, or 0 when there was no value")
    return seen


def _conflict(key: str, of: int = 1) -> Conflict:
    what = (
        f"the value of {key!r} was changed" if of == 1 else f"one of {of} values was changed, perhaps that of {key!r},"
    )
    return Conflict(
        f"{what} after it was read", kept="what is there; nothing was written", do="read it again, then write"
    )
