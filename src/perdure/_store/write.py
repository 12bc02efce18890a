"""A write on its way to disk, and the fence that the writes of one attempt share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

from perdure._ground.hop import Hop, mode
from perdure._store.contract import Params, Row
from perdure.errors import LeaseLost, PerdureError

if TYPE_CHECKING:
    from perdure._store.committer import Committer


class Fence:
    """What the writes of one attempt share: whether it may still write."""

    __slots__ = ("closed", "epoch", "task_id", "uid", "worker")

    def __init__(self, task_id: str, uid: str, epoch: int, worker: str) -> None:
        self.task_id, self.uid, self.epoch, self.worker = task_id, uid, epoch, worker
        self.closed: PerdureError | None = None

    def check(self) -> None:
        if self.closed is not None:
            raise self.closed

    def close(self, error: PerdureError) -> None:
        self.closed = self.closed or error


class Waiting:
    """A task of an event loop that waits for a write: all that asyncio asks of a future, and nothing more.

    A future, once done, has its task woken in the loop's next round. Here the callback that the committer sends to
    the loop is the one that goes on with the task: a round less for each write that is waited for.
    """

    __slots__ = ("_asyncio_future_blocking", "_callback", "_context", "_is_cancelled", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._asyncio_future_blocking = True  # to be yielded at once
        self._callback: Callable[[Waiting], object] | None = None
        self._context: Context | None = None
        self._is_cancelled = False

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self.loop

    def add_done_callback(self, callback: Callable[[Waiting], object], *, context: Context | None = None) -> None:
        self._callback, self._context = callback, context or copy_context()

    def done(self) -> bool:
        return self._callback is None

    def result(self) -> None:
        if self._is_cancelled:
            raise asyncio.CancelledError

    def cancel(self, msg: object = None) -> bool:
        """The task is cancelled: it goes on soon, without the write, which is carried out all the same."""
        callback, self._callback = self._callback, None
        if callback is None:
            return False
        self._is_cancelled = True
        self.loop.call_soon(callback, self, context=self._context)
        return True

    def wake(self) -> None:
        """The write is done: go on with the task, here and now, on its loop."""
        callback, self._callback = self._callback, None
        if callback is not None and self._context is not None:
            self._context.run(callback, self)


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
        self.waiters: tuple[Any, ...] = ()  # several scopes of a durable function may wait for one write

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
