"""Values that memory layers and adapters keep in the app's own store, by key: sealed, with a version.

A write can name the version it was made for, and is refused if another write was first. It can carry the fence of an
attempt, and is refused if that attempt has lost its lease.

Owns the table and its sealing. perdure/memory gives the values their meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from perdure._store import Fence, HolderRow, MemoryRow, Store, TaskRow
from perdure._tasks.task_walk import in_slices
from perdure.errors import InvalidInput, LeaseLost, RecordDamaged

MOST_KEY_BYTES = 1024
_PAGE = 1000
_KIND = "memory"
_ALL = 2**62
# Greater than every key: it is longer than the longest one.
_LAST = "\U0010ffff" * (MOST_KEY_BYTES // 4 + 1)


class Remembered(NamedTuple):
    value: Any
    version: int


class Stored(NamedTuple):
    """A value with its key, and its version to name in the next write."""

    key: str
    value: Any
    version: int


class Change(NamedTuple):
    """One of several writes made together; `is_kept` is False for a key to delete."""

    key: str
    owner: str = ""
    value: Any = None
    is_kept: bool = True
    seen: int | None = None
    expires_at: int | None = None


def bound_to(namespace: str, key: str) -> str:
    """The place a sealed value is bound to, so that it cannot be passed off as another's."""
    return f"{namespace}\0{key}"


def check_key(key: object) -> str:
    """The key, if every engine can hold it.

    Raises:
        InvalidInput: it cannot.
    """
    if not isinstance(key, str) or not key:
        raise InvalidInput(f"a key is a str with at least one character, not {key!r}")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"the key {key!r} has characters that cannot be stored") from None
    if "\0" in key or size > MOST_KEY_BYTES:
        raise InvalidInput(f"the key {key[:50]!r} has a NUL character, or more than {MOST_KEY_BYTES:,} bytes")
    return key


async def get(store: Store, key: str, *, life: str = "") -> Remembered | None:
    """The value under a key, unless it has expired; `life` is the uid of a task that is history.

    Raises:
        RecordDamaged, KeyMissing: there is a value, and it cannot be read; it is left as it is.
    """
    row = await store.row(MemoryRow, "get_memory", namespace=store.namespace, life=life, key=check_key(key))
    if row is None or (row.expires_at is not None and row.expires_at <= store.clock.now_ms()):
        return None
    return Remembered(store.unseal(bound_to(store.namespace, key), _KIND, row.value), row.version)


async def get_many(store: Store, keys: Iterable[str]) -> list[Stored]:
    """The values under these keys, in one query; a key without a value is left out.

    Raises:
        RecordDamaged, KeyMissing: one of the values cannot be read.
    """
    wanted = json.dumps([check_key(key) for key in dict.fromkeys(keys)])
    now = store.clock.now_ms()
    return _stored(store, await store.query("get_memories", namespace=store.namespace, keys=wanted, now=now))


async def scan(
    store: Store, prefix: str, *, after: str | None = None, limit: int | None = None, reverse: bool = False
) -> list[Stored]:
    """The values whose keys begin with the prefix, in the order of the keys, in one query.

    Raises:
        RecordDamaged, KeyMissing: one of the values cannot be read.
    """
    first, below = prefix, _after(prefix) or _LAST
    if after is not None and reverse:
        below = min(below, after)
    elif after is not None:
        first = max(first, after + "\x01")  # no key has a NUL, so nothing is between
    asked = {"namespace": store.namespace, "first": first, "below": below, "now": store.clock.now_ms()}
    name = "scan_memory_back" if reverse else "scan_memory"
    return _stored(store, await store.query(name, **asked, limit=_ALL if limit is None else limit))


def _stored(store: Store, rows: Iterable[Sequence[Any]]) -> list[Stored]:
    return [
        Stored(key, store.unseal(bound_to(store.namespace, key), _KIND, sealed), version)
        for key, version, sealed in rows
    ]


async def write(store: Store, changes: Sequence[Change], *, fence: Fence | None = None) -> list[int] | None:
    """Make all of these changes, or none when one of them is for a version that is not there any more.

    The version of each; for a deleted key its last one, 0 if it had none. Durable when this returns.

    Raises:
        NotStorable, TooLarge: nothing was written.
        LeaseLost: the attempt with this fence has lost its lease; nothing was written.
    """
    if fence is not None:
        fence.check()
    rows, contents = [], bytearray()
    for number, change in enumerate(changes):
        sealed = store.seal(bound_to(store.namespace, check_key(change.key)), _KIND, change.value)
        row = {"n": number, "key": change.key, "owner": change.owner, "seen": change.seen}
        place = {"start": len(contents) + 1, "size": len(sealed) if change.is_kept else None}
        rows.append({**row, **place, "expires_at": change.expires_at})
        contents += sealed if change.is_kept else b""
    params: dict[str, Any] = {"namespace": store.namespace, "rows": json.dumps(rows), "contents": bytes(contents)}
    params |= {"at": store.clock.now_ms(), "epoch": None, "worker": None}
    if fence is not None:
        params |= {"epoch": fence.epoch, "worker": fence.worker}
    # Its place in the order of writes is that of its first key; a batch can be sent again, so no other is needed.
    key = min(change.key for change in changes)
    row_found = await store.verb("write_memory", fence.uid if fence is not None else "", params, key=key)
    if row_found is not None:
        versions: list[int] = json.loads(row_found[0])
        return versions
    if fence is not None and not await _is_held(store, fence):
        raise LeaseLost(fence.task_id, "another attempt has taken over")
    if all(change.seen is None for change in changes):  # only the fence refuses; it was ours again a moment later
        return await write(store, changes, fence=fence)
    return None


async def damaged(store: Store, key: str) -> Remembered | None:
    """The bytes of a value that cannot be read, as they are; None when it can be, or there is none."""
    row = await store.row(MemoryRow, "get_memory", namespace=store.namespace, life="", key=check_key(key))
    if row is None:
        return None
    try:
        store.unseal(bound_to(store.namespace, key), _KIND, row.value)
    except RecordDamaged:
        return Remembered(bytes(row.value), row.version)
    return None


async def put(
    store: Store,
    key: str,
    value: object,
    *,
    owner: str = "",
    seen: int | None = None,
    expires_at: int | None = None,
    fence: Fence | None = None,
) -> int | None:
    """Keep a value; its version, or None when it is not the version `seen` any more. Durable when this returns.

    Raises:
        NotStorable, TooLarge: nothing was written.
        LeaseLost: the attempt with this fence has lost its lease; nothing was written.
    """
    if fence is not None:
        fence.check()
    params = put_params(store, key, value, owner=owner, seen=seen, expires_at=expires_at)
    params["epoch"] = fence.epoch if fence is not None else None
    params["worker"] = fence.worker if fence is not None else None
    row = await store.verb("put_memory", fence.uid if fence is not None else "", params, key=key)
    if row is not None:
        return int(row[0])
    if fence is not None and not await _is_held(store, fence):
        raise LeaseLost(fence.task_id, "another attempt has taken over")
    if seen is None:  # without a condition only the fence refuses; it was ours again a moment later
        return await put(store, key, value, owner=owner, expires_at=expires_at, fence=fence)
    return None


def put_params(
    store: Store, key: str, value: object, *, owner: str = "", seen: int | None = None, expires_at: int | None = None
) -> dict[str, Any]:
    """The parameters of the verbs that keep a value, except the fence of an attempt.

    Raises:
        InvalidInput, NotStorable, TooLarge: it cannot be kept.
    """
    return {
        "namespace": store.namespace,
        "key": check_key(key),
        "owner": owner,
        "at": store.clock.now_ms(),
        "expires_at": expires_at,
        "seen": seen,
        "value": store.seal(bound_to(store.namespace, key), _KIND, value),
    }


async def _is_held(store: Store, fence: Fence) -> bool:
    holder = await store.row(HolderRow, "read_holder", uid=fence.uid)
    return holder is not None and (holder.epoch, holder.worker) == (fence.epoch, fence.worker)


async def keys(store: Store, prefix: str, *, life: str = "") -> list[str]:
    """The keys that begin with this prefix, in order, without expired ones."""
    now, found, first = store.clock.now_ms(), [], prefix
    while True:
        asked = {"namespace": store.namespace, "life": life, "first": first, "below": _after(prefix)}
        page = await store.query("list_memory", **asked, limit=_PAGE)
        found += [key for key, _, expires_at in page if expires_at is None or expires_at > now]
        if len(page) < _PAGE:
            return found
        first = page[-1][0] + "\x01"


def _after(prefix: str) -> str | None:
    """The first text that is greater than all that begin with the prefix; None when there is none."""
    for end in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[end]) + 1
        if 0xD800 <= code <= 0xDFFF:
            code = 0xE000  # surrogates are not characters
        if code <= 0x10FFFF:
            return prefix[:end] + chr(code)
    return None


async def drop_expired(store: Store, *, dry_run: bool = False) -> int:
    """Remove what has expired; how many values that were."""
    now, done = store.clock.now_ms(), 0
    while page := await store.query("expired_memory", namespace=store.namespace, before=now, limit=_PAGE):
        if dry_run:
            return len(page)
        writes = [
            store.verb("drop_memory", "", {"namespace": store.namespace, "key": key, "before": now}, key=key)
            for (key,) in page
        ]
        done += sum(answer is not None for answer in await in_slices(store, writes))
    return done


async def fence_of(store: Store, task_id: str, former: Fence | None = None) -> Fence | None:
    """The fence of this process's attempt at a task, also of one that has lost its lease; None without one.

    `former` is the one found before; while it is in use, the store is not asked.
    """
    if not store.presence.held:
        return None
    if former is not None and (known := store.presence.held.get(former.uid)) is not None and known.fence is former:
        return former
    row = await store.row(TaskRow, "get_task", namespace=store.namespace, id=task_id)
    hold = store.presence.held.get(row.uid) if row is not None else None
    return hold.fence if hold is not None else None
