"""Where a durable function gets what is another thing each time: the time, chance, and its time running out.

recorded.now() .random() .uuid4()     drawn once, then read from the journal
perdure.timeout(seconds)              its running out is recorded, so a replay does not wait for it
is_replaying(), get_logger(name)      what has been said before is not said again
"""

from __future__ import annotations

import asyncio
import logging
import random as chance
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID
from uuid import uuid4 as draw_uuid4

from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.calls.recorded_calls import Policy, RecordedCall, refuse_divergence, walk_here
from perdure._durable.attempt.scopes import Scope, current
from perdure._ground import codec
from perdure._ground.durations import Duration, require_seconds
from perdure._model import Entry
from perdure._replay import Cut, Recorded, digest

T = TypeVar("T")


# ── values that are drawn once ───────────────────────────────────────────────────────────────────
# They are the same in every replay. Inside a step, and without a task, each call draws a new one.


def now() -> datetime:
    """The moment this was first asked, in UTC."""
    return _once("now", datetime, _now)


def random() -> float:
    """A number from 0 up to 1."""
    return _once("random", float, lambda _: chance.random())  # noqa: S311


def uuid4() -> UUID:
    """A random UUID."""
    return _once("uuid4", UUID, lambda _: draw_uuid4())


def _now(attempt: Attempt | None) -> datetime:
    if attempt is None:
        return datetime.now(UTC)
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=attempt.store.clock.now_ms())


def _once(op: str, as_type: type[T], draw: Callable[[Attempt | None], T]) -> T:
    scope = current.get()
    if scope is None:
        return draw(None)
    if scope.is_body:
        return draw(scope.attempt)
    drawn: T = walk_here(_Draw(scope, op, as_type, draw))
    return drawn


class _Draw(RecordedCall):
    """A value that is drawn once."""

    policy = Policy(is_plain=True, flush=False, waits_to_start=False, is_under_way=False)

    def __init__(self, scope: Scope, op: str, as_type: Any, draw: Callable[[Attempt | None], Any]) -> None:
        super().__init__(scope, f"recorded.{op}", b"")
        self.op, self.as_type, self._draw = op, as_type, draw

    def make(self) -> Any:
        return self._draw(self.attempt)


# ── saying things once ───────────────────────────────────────────────────────────────────────────


def is_replaying() -> bool:
    """Whether the code that runs now has run before, up to here; False outside a durable function."""
    scope = current.get()
    return scope is not None and not scope.is_body and scope.attempt.is_replaying


class ReplayFilter(logging.Filter):
    """Drops what a durable function logs while it is replayed: it was logged the first time."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not is_replaying()


def get_logger(name: str) -> logging.Logger:
    """The logger of this name, silent before the frontier."""
    logger = logging.getLogger(name)
    if not any(isinstance(found, ReplayFilter) for found in logger.filters):
        logger.addFilter(ReplayFilter())
    return logger


# ── time running out ─────────────────────────────────────────────────────────────────────────────


class timeout:
    """`async with timeout("30s"):` raises TimeoutError when the block takes longer, as asyncio.timeout does.
    A bare number is seconds.

    Inside a durable function its running out is recorded, with its place in the order of results. After a
    crash a block that was under way gets its whole time again.
    """

    def __init__(self, seconds: float | Duration) -> None:
        self._seconds = require_seconds("the timeout", seconds)
        self._attempt: Attempt | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._position: int | None = None
        self._is_fresh = self._is_told = False

    async def __aenter__(self) -> None:
        scope = current.get()
        if scope is None or scope.is_body:
            self._inner = asyncio.timeout(self._seconds)
            await self._inner.__aenter__()
            return
        attempt = self._attempt = scope.attempt
        attempt.check()
        self._asked = digest((self._seconds,), {})
        self._path, found = scope.track.look("timeout", self._asked)
        refuse_divergence(attempt, found)
        self._inner = asyncio.timeout(None)
        await self._inner.__aenter__()
        if type(found) is Recorded:
            self._await_turn(found.position)
        elif type(found) is Cut:  # it had run out just when the block was left
            attempt.passed(found.position)
        else:
            self._timer = attempt.loop.call_later(self._seconds, self._run_out)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._attempt is not None and self._position is not None and not self._is_told:
            self._withdraw(self._attempt, self._position)
        await self._inner.__aexit__(kind, error, trace)  # which raises, or does nothing

    def _run_out(self) -> None:
        attempt = self._attempt
        assert attempt is not None
        if attempt.is_ending:
            return
        now, data = attempt.store.clock.now_ms(), codec.encode(None)
        position, _ = attempt.record(
            Entry("result", "timeout", self._path, self._asked, data, at=now, epoch=attempt.epoch)
        )
        self._is_fresh = True
        self._await_turn(position)

    def _await_turn(self, position: int) -> None:
        assert self._attempt is not None
        self._position = position
        self._attempt.gate.come(position).add_done_callback(self._tell)

    def _tell(self, turn: asyncio.Future[Any]) -> None:
        if (
            self._attempt is None
            or self._position is None
            or self._is_told
            or turn.cancelled()
            or turn.exception() is not None
        ):
            return
        self._is_told = True
        self._attempt.gate.leave(self._position)
        self._inner.reschedule(self._attempt.loop.time())

    def _withdraw(self, attempt: Attempt, position: int) -> None:
        """The block was left before it was told; then it has not run out."""
        self._is_told = True
        attempt.gate.leave(position)
        if self._is_fresh and not attempt.is_ending:
            now = attempt.store.clock.now_ms()
            attempt.record(Entry("cut", "timeout", self._path, self._asked, at=now, epoch=attempt.epoch))
