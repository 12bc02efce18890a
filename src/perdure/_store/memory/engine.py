"""The contract in plain dictionaries, written to be obviously right.

The SQL engines are compared with this one after every step of random sequences of verbs. Nothing here
outlives the process; everything else is as in the others: one transaction at a time, all or nothing.

Owns the lock and the stores of this process by name. verbs.py has the verbs, queries.py the queries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from perdure._store.contract import Reading
from perdure._store.memory import functions, inbox, lists, situations, switches, waits, webhooks, workers
from perdure._store.memory import memory_values as remembering
from perdure._store.memory import named_values as shelf
from perdure._store.memory import transfer as moving
from perdure._store.memory.queries import QUERIES as TASK_QUERIES
from perdure._store.memory.tables import Tables
from perdure._store.memory.verbs import VERBS as TASK_VERBS
from perdure._store.rows import Params, Row

if TYPE_CHECKING:
    from perdure._store.write import Write

T = TypeVar("T")

_PARTS: tuple[Any, ...] = (
    functions,
    inbox,
    lists,
    moving,
    remembering,
    shelf,
    situations,
    switches,
    waits,
    webhooks,
    workers,
)
VERBS = TASK_VERBS | {name: verb for part in _PARTS for name, verb in part.VERBS.items()}
QUERIES = TASK_QUERIES | {name: query for part in _PARTS for name, query in part.QUERIES.items()}


class MemoryEngine:
    kind = "memory"
    is_local = True
    _stores: dict[str, Tables] = {}  # noqa: RUF012 - all engines of a process share it, by name
    _mutex = threading.Lock()

    def __init__(self, name: str) -> None:
        """The store of this name in this process; without a name, a new one."""
        self.place = f"memory://{name}"
        self._name = name
        with self._mutex:
            self._tables = self._stores.setdefault(name, Tables()) if name else Tables()

    def commit(self, writes: Sequence[Write]) -> list[Row | None]:
        rows: list[Row | None] = []
        with self._tables.lock:
            try:
                for write in writes:
                    rows.append(VERBS[write.verb](self._tables, write.params))
                    if rows[-1] is None and write.ordered:
                        break  # what its attempt wrote after it must not be in
            except BaseException:
                self._tables.roll_back()
                raise
            self._tables.keep()
        return rows

    def query(self, name: str, params: Params) -> list[Row]:
        with self._tables.lock:
            rows: list[Row] = QUERIES[name](self._tables, params)
            return rows

    def at_one_moment(self, act: Callable[[Reading], T]) -> T:
        with self._tables.lock:
            return act(self)

    def beat(self, worker: str) -> bool:
        """Nothing keeps a write waiting here."""
        return False

    def line(self) -> None:
        """No other process has it."""

    def close(self) -> None:
        """Nothing to give back; a store with a name stays until the process ends."""

    def mark_forked(self) -> None:
        """A store in memory belongs to one process: the child of a fork begins with an empty one."""
        MemoryEngine._mutex = threading.Lock()
        self._stores.pop(self._name, None)
