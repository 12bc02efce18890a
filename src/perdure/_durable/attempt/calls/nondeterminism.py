"""The sources of nondeterminism in a durable function: the time, random numbers, and time-outs.

recorded.now() .random() .uuid4()     drawn once, then read from the journal
perdure.timeout(seconds)              its expiry is recorded, so a replay does not wait for it
is_replaying(), get_logger(name)      does not log while finished steps are being replayed
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
from perdure._durable.attempt.calls.call import cut
from perdure._durable.attempt.calls.recorded_calls import Policy, RecordedCall, ask, walk_here
from perdure._durable.attempt.scopes import Scope, current
from perdure._ground.durations import Duration, require_seconds
from perdure._ground.encoding import codec
from perdure._replay import Answer, Cut, Fresh, Recorded, digest

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
    """True if the running code has run up to this point before. False outside a durable function."""
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
        self._call: _RunningOut | None = None  # inside a durable function
        self._timer: asyncio.TimerHandle | None = None
        self._turn: int | None = None  # the position of its running out
        self._is_told = False

    async def __aenter__(self) -> None:
        scope = current.get()
        if scope is None or scope.is_body:
            self._inner = asyncio.timeout(self._seconds)
            await self._inner.__aenter__()
            return
        call = self._call = _RunningOut(scope, self._seconds)
        found = ask(call)
        self._inner = asyncio.timeout(None)
        await self._inner.__aenter__()
        if type(found) is Recorded:
            self._await_turn(call, found.position)
        elif type(found) is Cut:  # it had run out just when the block was left
            call.attempt.passed(found.position)
        else:
            self._timer = call.attempt.loop.call_later(self._seconds, self._run_out, call)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._call is not None and self._turn is not None and not self._is_told:
            self._withdraw(self._call, self._turn)
        await self._inner.__aexit__(kind, error, trace)  # which raises, or does nothing

    def _run_out(self, call: _RunningOut) -> None:
        if call.attempt.is_ending:
            return
        call.record()
        assert call.position is not None
        self._await_turn(call, call.position)

    def _await_turn(self, call: _RunningOut, position: int) -> None:
        self._turn = position
        call.attempt.gate.come(position).add_done_callback(lambda turn: self._tell(call, position, turn))

    def _tell(self, call: _RunningOut, position: int, turn: asyncio.Future[Any]) -> None:
        if self._is_told or turn.cancelled() or turn.exception() is not None:
            return
        self._is_told = True
        call.attempt.gate.leave(position)
        self._inner.reschedule(call.attempt.loop.time())

    def _withdraw(self, call: _RunningOut, position: int) -> None:
        """The block was left before it was told. Then its time has not run out."""
        self._is_told = True
        call.attempt.gate.leave(position)
        if call.position is not None:
            cut(call.attempt, call.op, call.path, call.asked)


class _RunningOut(RecordedCall):
    """The end of a timeout's time: recorded only if it comes before the end of the block."""

    op = "timeout"
    policy = Policy(flush=False)
    data = codec.encode(None)

    def __init__(self, scope: Scope, seconds: float) -> None:
        super().__init__(scope, self.op, digest((seconds,), {}))

    def ask(self) -> Answer:
        path, found = self.scope.track.look(self.name, self.asked)
        return Fresh(path) if found is None else found
