"""Stop an attempt early: for a pause, because an operator ends the task, or because the process leaves.

An attempt is unwound when nothing of it runs any more: steps and effects under way end and are recorded first. A call
that waits for an answer then raises Paused, and so the function ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol

from msgspec import Struct

from perdure._durable.attempt.activity import Activity
from perdure._durable.attempt.delivery_order import NOBODY, Gate
from perdure._ground.bridge import mode

_DRAIN_LOOK_SECONDS = 0.02
# Code that was paused has this long to leave its blocks, and to close what it opened in them.
_GRACE_SECONDS = 0.5
making = threading.RLock()  # held while an attempt's part is made, seldom and for a moment


class Paused(BaseException):
    """Unwinds an attempt whose task will be resumed later. This is not a failure, so not an Exception."""


EXITS: tuple[type[BaseException], ...] = (KeyboardInterrupt, SystemExit)
LEAVING = (*EXITS, GeneratorExit, asyncio.CancelledError, Paused)


def is_leaving(raised: BaseException) -> bool:
    """True if the exception ends more than the call that raised it: the process, the attempt, a discarded coroutine."""
    return _is_any_of(raised, LEAVING)


def _is_any_of(raised: BaseException, kinds: tuple[type[BaseException], ...]) -> bool:
    if isinstance(raised, BaseExceptionGroup):
        return any(_is_any_of(member, kinds) for member in raised.exceptions)
    return isinstance(raised, kinds)


class Unwound(Protocol):
    """The attempt that is unwound."""

    body: asyncio.Task[Any] | None
    answers: dict[str, Any]
    is_over: bool

    @property
    def gate(self) -> Gate: ...

    def is_elsewhere(self) -> bool: ...

    def on_loop(self, act: Callable[[], object]) -> None: ...


class _RareUnwinding(Struct, eq=False):
    """Fields that most attempts never use. The first use creates all of them."""

    asked: dict[str, Any] = {}
    questions: dict[str, tuple[str, dict[str, Any], int | None]] = {}
    before: list[Callable[[], None]] = []
    leaving: BaseException | None = None
    begins_anew: bool = False  # the attempt is unwound as soon as its calls have ended, and replayed at once
    given_up: set[str] = set()  # by path: steps under way that only wait for the attempt to begin anew


class Unwinding:
    """Which calls wait for an answer, who wants the attempt to stop, and the stopping itself."""

    __slots__ = (
        "_activity", "_attempt", "_seldom", "draining", "halted", "has_begun", "is_restarting", "loop", "pausing",
        "stopping",
    )  # fmt: skip

    def __init__(self, attempt: Unwound, loop: asyncio.AbstractEventLoop, activity: Activity) -> None:
        self._attempt: Unwound | None = attempt  # until it is over
        self.loop, self._activity = loop, activity
        self._seldom: _RareUnwinding | None = None
        self.pausing: dict[str, asyncio.Future[None]] = {}  # by path: calls that wait for an answer
        self.has_begun = False
        self.stopping = False  # an operator wants the task to end or to stop
        self.halted = False  # the kill switch is on
        self.draining = False  # this process wants to exit, and another one shall continue the task
        self.is_restarting = False  # unwound only to be replayed at once

    @property
    def _parts(self) -> _RareUnwinding:
        found = self._seldom
        if found is None:
            with making:
                found = self._seldom = self._seldom or _RareUnwinding()
        return found

    @property
    def asked(self) -> dict[str, Any]:
        """By path: open questions (pauses.questions.Open)."""
        return self._parts.asked

    @property
    def questions(self) -> dict[str, tuple[str, dict[str, Any], int | None]]:
        """By path: the questions this attempt waits for, each with its reason and when it is due."""
        return self._parts.questions

    @property
    def before(self) -> list[Callable[[], None]]:
        """Called just before the attempt is unwound."""
        return self._parts.before

    @property
    def is_replayed_at_once(self) -> bool:
        """True if the attempt was unwound only to be replayed, with no other reason to stop."""
        return self.is_restarting and not self.stopping and not self.draining

    @property
    def leaving(self) -> BaseException | None:
        """The exception that ends the process, whatever the code makes of it."""
        return None if self._seldom is None else self._seldom.leaving

    def close(self) -> None:
        """The attempt is over: nothing is left to unwind."""
        self._attempt = None

    # ── waiting for an answer ───────────────────────────────────────────────────────────────────

    async def suspend(self, path: str) -> None:
        """Hold a scope until its answer arrives (`answered`), or raise Paused when the attempt is unwound."""
        if self._attempt is None:
            raise Paused
        future = self.pausing[path] = self.loop.create_future()
        self.begin_when_still()
        try:
            await future
        finally:
            del self.pausing[path]

    def answered(self, path: str, answer: Any) -> None:
        """An answer has arrived while other scopes of this attempt work: its own scope continues."""
        future = self.pausing.get(path)
        if future is None or future.done() or self.has_begun or self._attempt is None:
            return
        self._attempt.answers[path] = answer
        self.questions.pop(path, None)
        self.asked.pop(path, None)
        future.set_result(None)

    @contextmanager
    def held_off(self) -> Iterator[None]:
        """Something is on its way that the code will use: meanwhile no pause of another scope unwinds the attempt."""
        activity = self._activity
        activity.bodies += 1
        try:
            yield
        finally:
            activity.bodies -= 1
            if self.pausing or self.stopping:
                self.begin_when_still()

    # ── who wants it to stop ────────────────────────────────────────────────────────────────────

    def stop(self) -> None:
        """An operator wants the task to end: nothing new begins, effects under way end and are recorded."""
        self.stopping = True
        self.begin_when_still()

    def drain(self) -> None:
        """The process wants to leave: nothing new begins, steps and effects under way end and are recorded."""
        self.draining = True
        attempt = self._attempt
        if attempt is not None and not self.has_begun and not attempt.is_over:
            self.begin_when_still()
            self.loop.call_later(_DRAIN_LOOK_SECONDS, self.drain)  # not every call that ends leads to another look

    def halt(self) -> None:
        """The kill switch is on: stop, and leave the task as it is."""
        self.halted = True
        self.stop()

    def interrupt(self) -> None:
        """Stop at once: steps under way are run again later, effects are settled later."""
        self.draining = True
        attempt = self._attempt
        if attempt is not None and not self.has_begun and not attempt.is_over:
            self._unwind()
            self._cancel_body()

    def leave(self, raised: BaseException) -> None:
        """A call has raised an exception that ends the process, so it has no outcome. Code that catches the exception
        gets no further: anything it recorded after that call would be in the journal without it."""
        attempt = self._attempt
        if attempt is not None and _is_any_of(raised, EXITS) and not self.has_begun and not attempt.is_over:
            self._parts.leaving = raised
            self.begin()

    async def begin_anew(self, path: str, body: str | None = None) -> NoReturn:
        """Unwind the attempt and replay it at once in this process. Other steps and effects under way end first and are
        recorded; timers of the code are not waited for. `body`: the path of the step that asks, which is run again."""
        self.is_restarting = True
        if mode.blocking or self._attempt is None or self._attempt.is_elsewhere():
            self.begin()
            raise Paused
        seldom = self._parts
        seldom.begins_anew = True
        seldom.given_up.update(() if body is None else (body,))
        try:
            await self.suspend(path)
        finally:
            seldom.given_up.discard(body or "")
        raise Paused

    # ── the stopping itself ─────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Unwind at once: a plain function cannot wait until the other scopes rest."""
        self.has_begun = True
        if self._attempt is not None:
            self._attempt.on_loop(self._unwind)

    def begin_when_still(self) -> None:
        """Unwind as soon as nothing runs any more: steps and effects under way end and are recorded first."""
        if self._attempt is not None:
            self._attempt.on_loop(self._look)

    def _look(self) -> None:
        attempt = self._attempt
        if attempt is not None:
            attempt.gate.begin_to_rest()
            self.loop.call_soon(self._unwind_if_still, context=NOBODY)

    def _unwind_if_still(self) -> None:
        attempt, activity = self._attempt, self._activity
        if attempt is None or self.has_begun or activity.has_effects:
            return
        if self.stopping or (self._ends_early and activity.bodies + activity.inline <= len(self._given_up)):
            self._unwind()
            self._cancel_body()
            return
        if attempt.body is not None and attempt.body.done():
            return  # the function has ended, and no code waits for what it left behind
        if not self.pausing or activity.has_calls or not attempt.gate.is_idle:
            return
        if not attempt.gate.is_at_rest():
            self.loop.call_soon(self._unwind_if_still, context=NOBODY)
        elif (moment := attempt.gate.sleeps_until()) is not None:
            self.loop.call_at(moment, self.begin_when_still, context=NOBODY)
        else:
            # Paused reaches the scopes that wait for an answer. The function may be waiting for something only those
            # scopes could provide, such as an item of a queue: it is cancelled a little later.
            self._unwind()
            self.loop.call_later(_GRACE_SECONDS, self._cancel_body, context=NOBODY)

    def _unwind(self) -> None:
        self.has_begun = True
        for prepare in self.before if self._seldom is not None else ():
            prepare()
        for future in self.pausing.values():
            if not future.done():
                future.set_exception(Paused())

    def _cancel_body(self) -> None:
        body = None if self._attempt is None else self._attempt.body
        if body is not None and not body.done():
            body.cancel()

    @property
    def _ends_early(self) -> bool:
        return self.draining or (self._seldom is not None and self._seldom.begins_anew)

    @property
    def _given_up(self) -> Collection[str]:
        return () if self._seldom is None else self._seldom.given_up

    def fail(self, error: BaseException) -> None:
        """The attempt must not go on: every call that waits for an answer raises this."""
        for future in self.pausing.values():
            if not future.done():
                future.set_exception(error)
