"""A write on its way to disk, and the fence that the writes of one attempt share."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from perdure._ground.hop import Hop, mode
from perdure._store.contract import Params, Row
from perdure.errors import PerdureError

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
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            if self._committer.submit_and_wake(self, (loop, future)):
                yield from future
        if self.error is not None:
            raise self.error
        return self.row
