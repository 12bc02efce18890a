"""A write on its way to disk, and the fence that the writes of one attempt share."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from perdure._ground.hop import Hop, mode
from perdure._store.contract import Params, Row
from perdure._store.waking import Waiter, Waiting
from perdure.errors import LeaseLost, PerdureError

if TYPE_CHECKING:
    from perdure._store.committer import Committer


class Fence:
    """What the writes of one attempt share: whether it may still write."""

    __slots__ = ("__weakref__", "closed", "epoch", "task_id", "uid", "worker")

    def __init__(self, task_id: str, uid: str, epoch: int, worker: str) -> None:
        self.task_id, self.uid, self.epoch, self.worker = task_id, uid, epoch, worker
        self.closed: PerdureError | None = None

    def check(self) -> None:
        if self.closed is not None:
            raise self.closed

    def close(self, error: PerdureError) -> None:
        self.closed = self.closed or error
        were_closed.add(self)


# All that were ever closed and that somebody still has: mostly none, and then no write has to be asked for its own.
were_closed: WeakSet[Fence] = WeakSet()


class Write(Hop["Row | None"]):
    """One verb on its way to disk; awaiting it is waiting until it is durable (or refused: None)."""

    __slots__ = (
        "_committer",
        "done",
        "error",
        "fence",
        "key",
        "ordered",
        "params",
        "queued",
        "row",
        "since",
        "size",
        "verb",
        "waiters",
    )

    def __init__(
        self,
        committer: Committer,
        verb: str,
        params: Params,
        *,
        key: str,
        size: int = 200,
        fence: Fence | None = None,
        ordered: bool = False,
    ) -> None:
        self._committer = committer
        self.verb, self.params = verb, params
        self.key = key  # rows are locked in this order, so that two processes never wait for each other
        self.size = size
        self.fence = fence
        self.ordered = ordered  # a failure closes the attempt: what comes after must not be written
        self.row: Row | None = None
        self.error: BaseException | None = None
        self.queued = self.done = False
        self.since = 0.0  # when an attempt recorded it
        self.waiters: tuple[Waiter, ...] = ()  # several scopes of a durable function may wait for one write

    def outcome(self) -> Row | None:
        if self.error is not None:
            raise self.error
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
            waiting = Waiting(asyncio.get_running_loop())
            if self._committer.submit_and_wake(self, waiting):
                yield waiting
        if self.error is not None:
            raise self.error
        return self.row


def finish(write: Write, row: Row | None, error: BaseException | None) -> None:
    """It is done, or refused; an entry that is not in closes its attempt, so that none can come after it."""
    write.row, write.error = row, error
    fence = write.fence
    if fence is not None and write.ordered and (row is None or error is not None):
        fence.close(
            error
            if isinstance(error, PerdureError)
            else LeaseLost(fence.task_id, "another attempt has the lease, so an entry was refused")
        )
    write.done = True
