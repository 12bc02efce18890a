"""One store as one app sees it: writing verbs, reading rows, sealing payloads.

Engine, committer and presence belong to the process and are shared by all apps that name the same
store; namespace and keys belong to the app.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from perdure._ground.bridge import Call, drive
from perdure._ground.clock import Clock, SystemClock, from_environment
from perdure._ground.config import Address
from perdure._ground.encoding import codec
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure._model import EVENT_NAMES, digest
from perdure._store.bell import Bell
from perdure._store.committer import Committer
from perdure._store.contract import Engine, Reading
from perdure._store.interrupts import apart
from perdure._store.presence import Presence
from perdure._store.rows import Row
from perdure._store.write import Fence, Write
from perdure.errors import PerdureError, StoreForked

T = TypeVar("T")


class Shared:
    """The state that all apps of a process share when they use one store."""

    address: Address
    clock: Clock
    engine: Engine
    committer: Committer
    presence: Presence
    bell: Bell
    pid: int

    def __init__(self, address: Address, clock: Clock) -> None:
        self.address, self.clock = address, clock
        self.engine = make_engine(address)
        self.committer = Committer(self.engine)
        self.presence = Presence(self.engine, self.committer, clock)
        self.bell = Bell(self.engine, self.committer)
        self.pid = os.getpid()
        self.users = 0


_shared: dict[tuple[Address, int], Shared] = {}
_mutex = threading.Lock()
_ROW_BYTES = 300  # of a verb, beside its payloads


def _new_mutex() -> None:
    global _mutex
    _mutex = threading.Lock()


# Another thread of the parent may have held it at the moment of the fork.
os.register_at_fork(after_in_child=_new_mutex)


def share(address: Address) -> Shared:
    """The process's one Shared for this address; a new one after a fork."""
    with _mutex:
        key = (address, os.getpid())
        shared = _shared.get(key)
        if shared is None:
            shared = _shared[key] = Shared(address, from_environment())
        shared.users += 1
        return shared


def _let_go(shared: Shared) -> bool:
    """True if the caller was the last user, and has to close it."""
    with _mutex:
        shared.users -= 1
        if shared.users <= 0:
            _shared.pop((shared.address, shared.pid), None)
        return shared.users <= 0


def make_engine(address: Address) -> Engine:
    if address.engine == "sqlite":
        from pathlib import Path

        from perdure._store.sqlite import SqliteEngine

        return SqliteEngine(Path(address.target))
    if address.engine == "postgres":
        from perdure._store.postgres import PostgresEngine

        return PostgresEngine(address.target)
    from perdure._store.memory import MemoryEngine

    return MemoryEngine(address.target)


class Store:
    engine: Engine
    committer: Committer
    presence: Presence
    clock: Clock
    bell: Bell
    ring: KeyRing
    namespace: str
    place: str
    address: Address

    def __init__(self, shared: Shared, ring: KeyRing, namespace: str) -> None:
        self._shared = shared
        self.engine, self.committer = shared.engine, shared.committer
        self.presence, self.clock, self.bell = shared.presence, shared.clock, shared.bell
        self.ring, self.namespace = ring, namespace
        self.place, self.address = shared.engine.place, shared.address

    # ── rows ────────────────────────────────────────────────────────────────────────────────────

    def verb(
        self, name: str, uid: str, params: dict[str, Any], key: str, fence: Fence | None = None, size: int = 0
    ) -> Write:
        """One verb on one task; await it to have it durable. `size`: about how many bytes it is, if that is known."""
        params["uid"] = uid
        if fence is not None:
            params["epoch"], params["worker"] = fence.epoch, fence.worker
        if not size:
            size = _ROW_BYTES + sum([len(value) for value in params.values() if type(value) is bytes])
        return Write(self.committer, name, params, f"{self.namespace}\0{key}", size, fence)

    def query(self, name: str, **params: object) -> Call[list[Row]]:
        if self._shared.pid != os.getpid():
            raise StoreForked
        return Call(lambda: self.engine.query(name, params))

    def rows(self, kind: Callable[..., T], name: str, /, **params: object) -> Call[list[T]]:
        """The rows of a query, as their class (see `ROWS`)."""
        if self._shared.pid != os.getpid():
            raise StoreForked
        return Call(lambda: [kind(*row) for row in self.engine.query(name, params)])

    def row(self, kind: Callable[..., T], name: str, /, **params: object) -> Call[T | None]:
        """The first row of a query, or None."""
        if self._shared.pid != os.getpid():
            raise StoreForked
        return Call(lambda: next((kind(*row) for row in self.engine.query(name, params)), None))

    def read(self, act: Callable[[Engine], T]) -> Call[T]:
        """The result of `act` on the engine, by several queries perhaps, in one go."""
        if self._shared.pid != os.getpid():
            raise StoreForked
        return Call(lambda: act(self.engine))

    def look(self, act: Callable[[Reading], T]) -> Call[T]:
        """The same, for queries that have to agree: all of them see the store at one moment."""
        if self._shared.pid != os.getpid():
            raise StoreForked
        return Call(lambda: self.engine.at_one_moment(act))

    def be_hasty(self, patience: float) -> None:
        """Give up soon on a store that is away, for a process whose callers can ask again; in seconds."""
        act: Callable[[float], None] | None = getattr(self.engine, "be_hasty", None)
        if act is not None:
            act(patience)

    async def wall_ms(self) -> int:
        """The time that the deadlines of pauses are in: where several machines share a store, the store's own."""
        if self.engine.is_local or not isinstance(self.clock, SystemClock):
            return self.clock.now_ms()
        rows = await self.query("read_time")
        return int(rows[0][0]) if rows else self.clock.now_ms()  # a store that is not there yet has no time

    # ── payloads ────────────────────────────────────────────────────────────────────────────────

    def seal(self, uid: str, kind: str, value: object, as_type: object = Any) -> bytes:
        return envelope.seal(codec.encode(value, as_type), kind, uid, self.ring)

    def unseal(self, uid: str, kind: str, data: bytes, as_type: object = Any) -> Any:
        return codec.decode(envelope.unseal(data, kind=kind, bound_to=uid, ring=self.ring), as_type)

    def event(self, uid: str, kind: str, data: object = None, agent: str = "", once: str = "") -> dict[str, Any]:
        """The event that a lifecycle verb adds to the task's chain: author, act and time. `data` may be encoded
        already; `once` is the mark of a request that can be repeated."""
        if kind not in EVENT_NAMES:
            raise ValueError(f"{kind!r} is not a kind of event")
        at, author = self.clock.now_ms(), self.presence.author(agent, once)
        body = data if type(data) is bytes else codec.encode(data)
        return {
            "at": at,
            "kind": kind,
            "author": author,
            "body": envelope.seal(body, "event", uid, self.ring),
            "digest": digest(uid, kind, at, author, body),
        }

    # ── end ─────────────────────────────────────────────────────────────────────────────────────

    async def close(self) -> None:
        """Commit what is queued; the last app of the process to leave closes the engine."""
        # All of it or nothing: half closed, the process would hold leases that it has forgotten.
        await Call(lambda: apart(self._close_here))

    def _close_here(self) -> None:
        if self._shared.pid != os.getpid() or not _let_go(self._shared):
            return
        with suppress(PerdureError):  # when it is out of reach, others will see our leases fall silent
            drive(self.presence.end())
        self.committer.close()
        self.bell.close()
        self.engine.close()
