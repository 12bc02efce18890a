"""Storage for the values of layers: the adapter's four verbs, and the part of it that one layer can reach.

Adapters are for layers only: they do not know leases, so they cannot fence a write. The one on the app's own store
(app_storage.py) can. It also has `load` and `swap`, which keep two processes from overwriting each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from perdure._durable import LayerRecord, own_store
from perdure._ground.encoding import codec
from perdure._ground.encoding.key_parts import quoted, unquoted
from perdure.errors import Conflict, InvalidInput, RecordDamaged

T = TypeVar("T")
# Another process can replace a damaged value at the moment it is found, several times in a row.
_TRIES = 100


@runtime_checkable
class StorageAdapter(Protocol):
    """Values by key. A value is JSON-like or bytes and comes back equal; a key is any non-empty text."""

    async def get(self, key: str) -> Any | None: ...
    async def set(self, key: str, value: Any) -> None: ...
    async def delete(self, key: str) -> object: ...
    async def list(self, prefix: str) -> Sequence[str]: ...


class Loaded(NamedTuple):
    value: Any
    version: int | None  # None when the adapter keeps no versions


async def get_many(adapter: StorageAdapter, keys: Iterable[str]) -> dict[str, Any]:
    """The values under these keys; keys without a value are left out."""
    own = getattr(adapter, "get_many", None)
    if own is not None:
        found: dict[str, Any] = await own(list(keys))
        return found
    wanted = list(dict.fromkeys(keys))
    values = await asyncio.gather(*(adapter.get(key) for key in wanted))
    return {key: value for key, value in zip(wanted, values, strict=True) if value is not None}


def owner_prefix(scope: str, owner: str) -> str:
    """The prefix of one owner's keys; one owner's prefix is never the beginning of another's."""
    return f"{scope}/{quoted(owner)}/"


def task_of(key: str) -> str:
    """The task whose execution scope holds the key; empty if the key is in another scope."""
    scope, _, rest = key.partition("/")
    owner, slash, _ = rest.partition("/")
    if scope != "execution" or not slash:
        return ""
    return unquoted(owner)


class ScopedStorage:
    """One layer's part of an adapter: other owners, scopes and layers cannot be named from here.

    Inside a durable function its answers are recorded, and each value is stored once.
    """

    def __init__(
        self, adapter: StorageAdapter, scope: str, owner: str, layer_id: str, record: LayerRecord | None = None
    ) -> None:
        self._adapter = adapter
        self._prefix = f"{owner_prefix(scope, owner)}{quoted(layer_id)}/"
        self._record = record or LayerRecord(layer_id)

    async def get(self, name: str) -> Any | None:
        return await self._record.answer("get", partial(self._adapter.get, self._key(name)))

    async def set(self, name: str, value: Any) -> None:
        await self._write(self._key(name), value, None)

    async def delete(self, name: str) -> None:
        await self._record.answer("delete", partial(self._adapter.delete, self._key(name)))

    async def list(self, prefix: str = "") -> list[str]:
        found = await self._record.answer("list", partial(self._list, self._prefix + prefix))
        return [key.removeprefix(self._prefix) for key in found]

    async def _list(self, prefix: str) -> Sequence[str]:
        return [*await self._adapter.list(prefix)]

    async def get_many(self, names: Iterable[str]) -> dict[str, Any]:
        keys = [self._key(name) for name in names]
        found = await self._record.answer("get_many", partial(get_many, self._adapter, keys))
        return {key.removeprefix(self._prefix): value for key, value in found.items()}

    async def load(self, name: str) -> Loaded | None:
        """The value with the version to pass to `swap`; the version is None when the adapter keeps none."""
        found = await self._record.answer("load", partial(self._load, self._key(name)))
        return None if found is None else Loaded(*found)

    async def _load(self, key: str) -> Loaded | None:
        own = getattr(self._adapter, "load", None)
        if own is None:
            value = await self._adapter.get(key)
            return None if value is None else Loaded(value, None)
        loaded: Loaded | None = await own(key)
        return loaded

    async def swap(self, name: str, value: Any, seen: int | None, *, expires_at: int | None = None) -> int | None:
        """Store the value if the stored version is still `seen` (0: nothing stored yet). Returns the new version, or
        None.

        An adapter without versions stores every value and returns 0.
        """
        return await self._write(self._key(name), value, seen, expires_at)

    async def _write(self, key: str, value: Any, seen: int | None, expires_at: int | None = None) -> int | None:
        adapter = self._adapter
        own = getattr(adapter, "put_params", None)

        def prepare() -> dict[str, Any] | None:
            if own is None or not own_store(adapter.committer):  # type: ignore[attr-defined]
                return None
            params: dict[str, Any] = own(key, value, seen, expires_at)
            return params

        async def elsewhere(is_doubtful: bool) -> int | None:
            swap = getattr(adapter, "swap", None)
            if swap is None or seen is None:
                await adapter.set(key, value)
                return 0
            version: int | None = await swap(key, value, seen, expires_at=expires_at)
            if version is None and is_doubtful:  # an attempt that died might have stored it
                found = await self._load(key)
                if found is not None and codec.encode(found.value) == codec.encode(value):
                    version = found.version
            return version

        return await self._record.write(key, seen, prepare, elsewhere)

    async def load_good(
        self, name: str, read: Callable[[Any], Awaitable[T]], note: Callable[[str], None]
    ) -> tuple[T | None, int]:
        """The result of `read` on the value, with the version to pass to `swap`; None without a value.

        A value that is damaged, as `read` or the storage say by RecordDamaged, is set aside under `<name>.damaged` and
        noted, and counts as missing: the next `swap` can replace it.
        """
        for _ in range(_TRIES):
            loaded = None
            try:
                loaded = await self.load(name)
                return (None, 0) if loaded is None else (await read(loaded.value), loaded.version or 1)
            except RecordDamaged as error:
                version = await self._set_aside(name, loaded)
                if version is not None:
                    note(f"{error.what}. It is set aside; a copy stored elsewhere is used, if there is one")
                    return None, version
        raise Conflict(f"gave up saving layer key {name!r}: other processes kept changing it")

    async def _set_aside(self, name: str, loaded: Loaded | None) -> int | None:
        """The version of the value that was set aside; None if it is no longer damaged.

        A value that can only be read as bytes must be kept by the adapter. An adapter without a way to do so leaves it
        until it is replaced.
        """
        aside = self._key(f"{name}.damaged")

        async def put() -> int | None:
            if loaded is not None:
                await self._adapter.set(aside, loaded.value)
                return loaded.version or 1
            own = getattr(self._adapter, "set_aside", None)
            version: int | None = 0 if own is None else await own(self._key(name), aside)
            return version

        return await self._record.answer("set aside", put)

    def _key(self, name: str) -> str:
        if not name:
            raise InvalidInput("a layer keeps its values under names with at least one character")
        return self._prefix + name
