"""The facts of a store at a glance: where it is, how large it is, which keys seal it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from perdure._ground.bridge import Call
from perdure._store import Store


class StoreFacts(Struct, frozen=True, kw_only=True):
    """A store at a glance. Sizes are in bytes; None where that cannot be told."""

    engine: str  # sqlite, postgres, memory
    place: str
    namespace: str
    bytes: int
    wal_bytes: int | None
    free_bytes: int | None  # on the disk of a SQLite file
    old_readers: Sequence[str]  # processes that keep what was overwritten from being tidied away
    migrations: int
    last_migration: str
    keys: Sequence[str]  # ids of the keys that open records here
    sealing_key: str | None  # the key that seals new records; None: they are not sealed


async def store_facts(store: Store) -> StoreFacts:
    """The facts of this store; nothing is read of its tasks."""
    migrations = await store.query("read_migrations")
    sizes = await Call(lambda: _sizes(store))
    current = store.ring.current
    return StoreFacts(
        engine=store.engine.kind,
        place=store.place,
        namespace=store.namespace,
        **sizes,
        migrations=len(migrations),
        last_migration=migrations[-1][0] if migrations else "",
        keys=list(store.ring.ids),
        sealing_key=current.id if current is not None else None,
    )


def _sizes(store: Store) -> dict[str, Any]:
    engine = store.engine
    used: Callable[[], int] = getattr(engine, "bytes_used", lambda: 0)
    readers: Callable[[], list[Any]] = getattr(engine, "old_readers", list)
    path: Path | None = getattr(engine, "path", None)
    found: dict[str, Any] = {"bytes": 0, "wal_bytes": None, "free_bytes": None, "old_readers": []}
    if path is not None and not path.exists():
        return found  # nothing was ever written
    found.update(bytes=used(), old_readers=[f"{one.who} {one.what}" for one in readers()])
    if path is not None:
        log = path.with_name(path.name + "-wal")
        found.update(
            wal_bytes=log.stat().st_size if log.exists() else 0, free_bytes=shutil.disk_usage(path.parent).free
        )
    return found
