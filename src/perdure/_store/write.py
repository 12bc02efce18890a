"""A write on its way to disk, and the fence that the writes of one attempt share."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from operator import attrgetter
from typing import Any, Protocol
from weakref import ref

from msgspec import Struct, field

from perdure._ground.bridge import Hop, mode, without_asyncio
from perdure._store.rows import Params, Row
from perdure._store.wake_ups import Waiter, Waiting
from perdure.errors import LeaseLost, PerdureError, StoreUnavailable


class Queue(Protocol):
    """The queue of writes, which the committer is."""

    def enqueue(self, write: Write) -> None: ...

    def wait(self, write: Write) -> None: ...

    def submit_and_wake(self, write: Write, waiting: Waiting) -> bool: ...


# Writes, fences and those who wait are made for every step: a Struct is made in C, a fourth of what a class takes.


class Fence(Struct, eq=False, weakref=True):
    """The state that the writes of one attempt share: whether it may still write, and where."""

    task_id: str
    uid: str
    epoch: int
    worker: str
    closed: PerdureError | None = None
    position: int = 0  # of the newest entry in its journal
    unflushed: list[Write] = field(default_factory=list)  # entries that were not on disk when it was last looked

    @property
    def newest(self) -> Write | None:
        """The last entry of its journal, if that is not known to be on disk."""
        try:
            return self.unflushed[-1]
        except IndexError:
            return None

    def check(self) -> None:
        if self.closed is not None:
            raise self.closed.with_traceback(None)

    def close(self, error: PerdureError) -> None:
        self.closed = self.closed or error
        were_closed.add(ref(self, were_closed.discard))

    def let_go(self) -> None:
        """The attempt has ended, and all it wrote is on disk: its writes, which hold it, are no longer held by it."""
        self.unflushed.clear()


# All closed fences that are still referenced. Mostly there are none, and then no write has to check its own.
were_closed: set[ref[Fence]] = set()


class Write(Hop["Row | None"], Struct, eq=False):
    """One verb on its way to disk; awaiting it is waiting until it is durable (or refused: None)."""

    _committer: Queue
    verb: str
    params: Params
    key: str  # rows are locked in this order, so that two processes never wait for each other
    size: int = 200
    fence: Fence | None = None
    ordered: bool = False  # a failure closes the attempt: what comes after must not be written
    since: float = 0.0  # when an attempt recorded it
    row: Row | None = None
    error: BaseException | None = None
    queued: bool = False
    done: bool = False
    waiters: tuple[Waiter, ...] = ()  # several scopes of a durable function can wait for one write

    def __repr__(self) -> str:
        return object.__repr__(self)  # not its payload

    def outcome(self) -> Row | None:
        if self.error is not None:
            raise self.error.with_traceback(None)  # one error, and many who wait: not the way of each on top of it
        return self.row

    def block(self) -> Row | None:
        if not self.queued:
            self._committer.enqueue(self)
        self._committer.wait(self)
        return self.outcome()

    def __await__(self) -> Generator[Any, None, Row | None]:
        # What Hop does, and `on_loop` with it: one generator less for each of the most frequent waits.
        if not self.done:
            if mode.blocking:
                return self.block()
            try:
                waiting = Waiting(asyncio.get_running_loop())
            except RuntimeError as error:
                raise without_asyncio() from error
            if self._committer.submit_and_wake(self, waiting):
                yield waiting
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self.row


def finish(write: Write, row: Row | None, error: BaseException | None) -> None:
    """It is done, or refused; an entry that is not in closes its attempt, so that none can come after it."""
    fence = write.fence
    if row is None and error is None and fence is not None:
        error = fence.closed  # by one that was refused before it
    write.row, write.error = row, error
    if fence is not None and write.ordered and (row is None or error is not None):
        fence.close(
            error
            if isinstance(error, PerdureError)
            else LeaseLost(fence.task_id, "another attempt has the lease, so an entry was refused")
        )
    write.done = True


def in_our_words(error: Exception) -> PerdureError:
    """An error of the engine, or of a value that it could not use."""
    if isinstance(error, PerdureError):
        return error
    ours = StoreUnavailable(
        f"a write failed: {type(error).__name__}: {error}",
        kept="all that was acknowledged; this write changed nothing",
        do="`perdure doctor` checks the store; this is a fault in perdure if it finds none",
    )
    ours.__cause__ = error
    return ours


# What is asked of every write of a batch is asked by these and `map`, without a line of Python for each.
verb_of, params_of, key_of = attrgetter("verb"), attrgetter("params"), attrgetter("key")
size_of, waiters_of = attrgetter("size"), attrgetter("waiters")
