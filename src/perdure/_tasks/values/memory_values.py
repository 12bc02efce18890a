"""What memory layers keep in the app's own store, by key: sealed values with a version.

A write may name the version it was made for, and is refused when another came before it; and it may carry
the fence of an attempt, and is refused when that attempt has lost its lease.

Owns the table and its sealing. What layers make of it is in perdure/memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from perdure._store import Fence, Store
from perdure._tasks.task_walk import in_slices
from perdure.errors import InvalidInput, LeaseLost, RecordDamaged

MOST_KEY_BYTES = 1024
_PAGE = 1000
_KIND = "memory"


class Remembered(NamedTuple):
    value: Any
    version: int


def bound_to(namespace: str, key: str) -> str:
    """What a sealed value is bound to, so that it cannot be passed off as another's."""
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
    """What is kept under a key, unless its time is over; `life` is the uid of a task that is history.

    Raises:
        RecordDamaged, KeyMissing: there is a value, and it cannot be read; it is left as it is.
    """
    rows = await store.query("get_memory", namespace=store.namespace, life=life, key=check_key(key))
    if not rows:
        return None
    version, _, expires_at, sealed = rows[0]
    if expires_at is not None and expires_at <= store.clock.now_ms():
        return None
    return Remembered(store.unseal(bound_to(store.namespace, key), _KIND, sealed), version)


async def damaged(store: Store, key: str) -> Remembered | None:
    """The bytes of a value that cannot be read, as they are; None when it can be, or there is none."""
    rows = await store.query("get_memory", namespace=store.namespace, life="", key=check_key(key))
    if not rows:
        return None
    try:
        store.unseal(bound_to(store.namespace, key), _KIND, rows[0][3])
    except RecordDamaged:
        return Remembered(bytes(rows[0][3]), rows[0][0])
    return None


async def put(
    store: Store,
    key: str,
    value: Any,
    *,
    owner: str = "",
    seen: int | None = None,
    expires_at: int | None = None,
    fence: Fence | None = None,
) -> int | None:
    """Keep a value; its version, or None when it is not the version `seen` any more. Durable when this returns.

    Raises:
        NotStorable, TooLarge: nothing was written.
        LeaseLost: the attempt whose fence this is may no longer write; nothing was written.
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
    store: Store, key: str, value: Any, *, owner: str = "", seen: int | None = None, expires_at: int | None = None
) -> dict[str, Any]:
    """What the verbs take that keep a value, but for the fence of an attempt.

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
    rows = await store.query("read_holder", uid=fence.uid)
    return bool(rows) and tuple(rows[0][:2]) == (fence.epoch, fence.worker)


async def drop(store: Store, key: str) -> bool:
    """Keep nothing under this key any more; whether there was something."""
    params = {"namespace": store.namespace, "key": check_key(key), "before": None}
    return await store.verb("drop_memory", "", params, key=key) is not None


async def keys(store: Store, prefix: str, *, life: str = "") -> list[str]:
    """The keys that begin with this, in order; those whose time is over are left out."""
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
            code = 0xE000  # surrogates are no characters
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


async def fence_of(store: Store, task_id: str) -> Fence | None:
    """The fence of this process's attempt at a task, also of one that has lost its lease; None without one."""
    if not store.presence.held:
        return None
    rows = await store.query("get_task", namespace=store.namespace, id=task_id)
    hold = store.presence.held.get(rows[0][0]) if rows else None
    return hold.fence if hold is not None else None
