"""The rows of a store in memory, and the way back to the last commit.

Rows are immutable and are replaced whole, so undoing is putting the former ones back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from perdure._store.rows import AttemptRow, DeliveryRow, EventRow, FrameRow, HookRow, TaskRow

K = TypeVar("K")
V = TypeVar("V")

_NOTHING: Any = object()


class Lease(NamedTuple):
    epoch: int
    worker: str | None
    taken_at: int | None


class Worker(NamedTuple):
    id: str
    beats: int
    host: str
    boot_id: str
    pid_ns: str
    pid: int
    pid_start: int
    user: str
    lease_ms: int
    started_at: int
    knows: str = ""
    wish: str = ""


class Tombstone(NamedTuple):
    uid: str
    namespace: str
    id: str
    status: str
    event_count: int
    event_head: bytes
    created_at: int
    deleted_at: int
    author: str


class Tables:
    """The same tables as in sqlite/schema.sql; those with rows of a task are kept by its uid."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a look asks several times
        self.tasks: dict[str, TaskRow] = {}
        self.current: dict[tuple[str, str], str] = {}  # by namespace and id: the uid; the unique index
        self.leases: dict[str, Lease] = {}
        self.workers: dict[str, Worker] = {}
        self.tombstones: dict[str, Tombstone] = {}
        self.checkpoints: dict[str, dict[int, FrameRow]] = {}
        self.attempts: dict[str, dict[int, AttemptRow]] = {}
        self.events: dict[str, dict[int, EventRow]] = {}
        self.journal: dict[str, dict[tuple[int, int], bytes]] = {}  # by line and position
        self.journal_ends: dict[str, tuple[int, int]] = {}  # line and position
        self.chunks: dict[str, dict[tuple[str, int], bytes]] = {}  # by owner and number
        self.calls: dict[str, Any] = {}  # these three: rows of functions.py
        self.pauses: dict[str, dict[str, Any]] = {}  # by path
        self.signals: dict[str, dict[tuple[str, int], Any]] = {}  # by name and number
        self.shelf: dict[str, dict[tuple[str, str], Any]] = {}  # by kind and name: rows of named_values.py
        self.deliveries: dict[str, dict[str, int]] = {}  # by handler
        self.rate_limits: dict[tuple[str, str], Any] = {}  # by namespace and provider: rows of waits.py
        self.memory: dict[tuple[str, str, str], Any] = {}  # by namespace, life and key; rows of memory_values.py
        self.slots: dict[tuple[str, int], Any] = {}  # by scope and number: rows of limits.py
        self.switches: dict[tuple[str, str], Any] = {}  # by namespace and id
        self.webhooks: dict[tuple[str, str], HookRow] = {}  # by namespace and id
        self.hook_deliveries: dict[str, tuple[str, DeliveryRow]] = {}  # by id, with the namespace
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def put(self, table: dict[K, V], key: K, row: V) -> None:
        self._undo.append((table, key, table.get(key, _NOTHING)))
        table[key] = row

    def put_of(self, table: dict[str, dict[K, V]], uid: str, key: K, row: V) -> None:
        """Put one of the rows a task has in this table."""
        if uid not in table:
            self.put(table, uid, {})
        self.put(table[uid], key, row)

    def remove(self, table: dict[K, Any], key: K) -> None:
        if key in table:
            self._undo.append((table, key, table.pop(key)))

    def put_entry(self, uid: str, place: tuple[int, int], entry: bytes) -> None:
        """Put an entry of a journal, and keep the journal's end up to date."""
        self.put_of(self.journal, uid, place, entry)
        self.put(self.journal_ends, uid, max(place, self.journal_ends.get(uid, place)))

    # ── the end of a transaction ────────────────────────────────────────────────────────────────

    def keep(self) -> None:
        self._undo.clear()

    def roll_back(self) -> None:
        while self._undo:
            table, key, before = self._undo.pop()
            if before is _NOTHING:
                table.pop(key, None)
            else:
                table[key] = before

    # ── looking ─────────────────────────────────────────────────────────────────────────────────

    def held_by(self, worker: str) -> int:
        """The number of leases a process holds."""
        return sum(lease.worker == worker for lease in self.leases.values())

    def may_write(self, uid: str, epoch: int, worker: str) -> bool:
        """The fence: whether this process has the lease, and has it since it was given this epoch."""
        lease = self.leases.get(uid)
        return lease is not None and (lease.epoch, lease.worker) == (epoch, worker)

    def open_attempts(self, uid: str) -> Iterator[AttemptRow]:
        return (row for row in list(self.attempts.get(uid, {}).values()) if row.ended_at is None)
