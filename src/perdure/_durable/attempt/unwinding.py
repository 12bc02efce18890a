"""Stop an attempt where it may be stopped: for a pause, an end, a leave, or at once.

An attempt is unwound when nothing of it runs any more: steps and effects under way end and are recorded first. Who
waits for an answer then gets Paused, and so the code comes to its end.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol

from msgspec import Struct

from perdure._durable.attempt.delivery_order import NOBODY, Gate
from perdure._ground.bridge import mode

_DRAIN_LOOK_SECONDS = 0.02
# Code that was paused has this long to leave its blocks, and to close what it opened in them.
_GRACE_SECONDS = 0.5
making = threading.RLock()  # held while an attempt's part is made, seldom and for a moment


class Paused(BaseException):
    """Unwinds an attempt whose task will be resumed later; no failure, so no Exception."""


EXITS: tuple[type[BaseException], ...] = (KeyboardInterrupt, SystemExit)
LEAVING = (*EXITS, GeneratorExit, asyncio.CancelledError, Paused)


def is_leaving(raised: BaseException) -> bool:
    """Whether it ends more than the call it comes from: the process, the attempt, a coroutine that is thrown away."""
    return _is_any_of(raised, LEAVING)


def _is_any_of(raised: BaseException, kinds: tuple[type[BaseException], ...]) -> bool:
    if isinstance(raised, BaseExceptionGroup):
        return any(_is_any_of(member, kinds) for member in raised.exceptions)
    return isinstance(raised, kinds)


class EffectsUnderWay(Protocol):
    """The effects of an attempt; effects/running_effects.py has more of them."""

    @property
    def walks(self) -> Collection[object]:
        """Those between their intent and their outcome."""
        ...


class Late(Struct, eq=False):
    """Made as a whole, when one of them is first asked for. (A `__getattr__` would do, and make each look at any
    attribute of an attempt three times as dear.)"""

    asked: dict[str, Any] = {}
    questions: dict[str, tuple[str, dict[str, Any], int | None]] = {}
    before_unwinding: list[Callable[[], None]] = []
    patches: dict[str, bool] = {}
    parts: dict[Any, Any] = {}  # what other modules keep for the attempt, by how it is made
    warned: dict[str, None] = {}  # steps of which was said that they hold up the loop
    not_awaited: str | None = None  # a step or effect that was called and dropped
    leaving: BaseException | None = None  # what ends the process, whatever the code makes of it
    begins_anew: bool = False  # the attempt is unwound as soon as its calls have ended, and replayed at once
    given_up: set[str] = set()  # by path: steps under way that only wait for that


class Unwinding:
    """The part of an attempt that ends it early; what its attributes mean is said in attempt.py."""

    __slots__ = ("_late", "bodies", "draining", "halted", "is_restarting", "stopping", "unwinding")

    loop: asyncio.AbstractEventLoop
    body: asyncio.Task[Any] | None
    pausing: dict[str, asyncio.Future[None]]
    answers: dict[str, Any]
    bodies: int
    inline: int
    at_work: EffectsUnderWay | None
    is_restarting: bool
    draining: bool
    stopping: bool
    halted: bool
    unwinding: bool
    is_over: bool
    _thread: int
    _late: Late | None

    @property
    def late(self) -> Late:
        """What most attempts never use."""
        found = self._late
        if found is None:
            with making:
                found = self._late = self._late or Late()
        return found

    @property
    def effecting(self) -> bool:
        """Whether an effect is between its intent and its outcome."""
        return self.at_work is not None and bool(self.at_work.walks)

    @property
    def asked(self) -> dict[str, Any]:
        """By path: questions that are open (asking.Open)."""
        return self.late.asked

    @property
    def questions(self) -> dict[str, tuple[str, dict[str, Any], int | None]]:
        """By path: those that this attempt waits for, with their reason and when they are due."""
        return self.late.questions

    @property
    def before_unwinding(self) -> list[Callable[[], None]]:
        return self.late.before_unwinding

    @property
    def gate(self) -> Gate:
        raise NotImplementedError

    def on_loop(self, act: Callable[[], object]) -> None:
        """Have something done on the attempt's loop: now, or soon if this is another thread."""
        if threading.get_ident() == self._thread:
            act()
        else:
            self.loop.call_soon_threadsafe(act)

    @contextmanager
    def not_at_rest(self) -> Iterator[None]:
        """Something is on its way that the code will go on with: no pause of others unwinds the attempt meanwhile."""
        self.bodies += 1
        try:
            yield
        finally:
            self.bodies -= 1
            if self.pausing or self.stopping:
                self.look_for_unwinding()

    async def suspend(self, path: str) -> None:
        """Keep a scope until its answer comes (`answered`), or raise Paused when the attempt is unwound."""
        future = self.pausing[path] = self.loop.create_future()
        self.look_for_unwinding()
        try:
            await future
        finally:
            del self.pausing[path]

    async def begin_anew(self, path: str, body: str | None = None) -> NoReturn:
        """Unwind the attempt and replay it at once in this process. Other steps and effects under way end first and are
        recorded; timers of the code are not waited for. `body`: the path of the step that asks, which is run again."""
        self.is_restarting = True
        if mode.blocking or threading.get_ident() != self._thread:
            self.unwind()
            raise Paused
        self.late.begins_anew = True
        self.late.given_up.update(() if body is None else (body,))
        try:
            await self.suspend(path)
        finally:
            self.late.given_up.discard(body or "")
        raise Paused

    def interrupt(self) -> None:
        """Stop at once: steps under way are run again later, effects are settled later."""
        self.draining = True
        if not self.unwinding and not self.is_over:
            self._unwind()
            if self.body is not None:
                self.body.cancel()

    def leave(self, raised: BaseException) -> None:
        """A call has raised what ends the process, and has no outcome. Code that catches it comes no further: what it
        recorded after that call would stand in the journal without it."""
        if _is_any_of(raised, EXITS) and not self.unwinding and not self.is_over:
            self.late.leaving = raised
            self.unwind()

    def answered(self, path: str, answer: Any) -> None:
        """An answer has come while others of this attempt are at work: its scope goes on."""
        future = self.pausing.get(path)
        if future is None or future.done() or self.unwinding:
            return
        self.answers[path] = answer
        self.questions.pop(path, None)
        self.asked.pop(path, None)
        future.set_result(None)

    def look_for_unwinding(self) -> None:
        """Unwind as soon as nothing runs any more: steps and effects under way end and are recorded first."""
        self.on_loop(self._begin_unwinding)

    def _begin_unwinding(self) -> None:
        self.gate.begin_to_rest()
        self.loop.call_soon(self._unwind_if_still, context=NOBODY)

    def stop(self) -> None:
        """Somebody wants the task to end: nothing begins any more, effects under way end and are recorded."""
        self.stopping = True
        self.look_for_unwinding()

    def drain(self) -> None:
        """The process wants to leave: nothing begins any more, steps and effects under way end and are recorded."""
        self.draining = True
        if not self.unwinding and not self.is_over:
            self.look_for_unwinding()
            self.loop.call_later(_DRAIN_LOOK_SECONDS, self.drain)  # a call that ends does not always lead to another

    def halt(self) -> None:
        """The kill switch is on: the same, and the task stays as it is."""
        self.halted = True
        self.stop()

    def _unwind_if_still(self) -> None:
        if self.unwinding or self.effecting:
            return
        if self.stopping or (self._ends_early and self.bodies + self.inline <= len(self._given_up)):
            self._unwind()
            if self.body is not None:
                self.body.cancel()
            return
        if self.body is not None and self.body.done():
            return  # the function has ended, and nobody waits for what it left behind
        if not self.pausing or self.bodies or self.inline or not self.gate.is_idle:
            return
        if not self.gate.is_at_rest():
            self.loop.call_soon(self._unwind_if_still, context=NOBODY)
        elif (moment := self.gate.sleeps_until()) is not None:
            self.loop.call_at(moment, self.look_for_unwinding, context=NOBODY)
        else:
            self._unwind()
            self.loop.call_later(_GRACE_SECONDS, self._cancel_body, context=NOBODY)

    def _cancel_body(self) -> None:
        """Paused has reached the scopes that waited for an answer. The function may wait for something that only they
        could have given it, such as an item of a queue."""
        if self.body is not None and not self.body.done():
            self.body.cancel()

    @property
    def _ends_early(self) -> bool:
        return self.draining or (self._late is not None and self._late.begins_anew)

    @property
    def _given_up(self) -> Collection[str]:
        return () if self._late is None else self._late.given_up

    def unwind(self) -> None:
        """Unwind at once: a plain function cannot wait until the others have come to rest."""
        self.unwinding = True
        if threading.get_ident() == self._thread:
            self._unwind()
        else:
            self.loop.call_soon_threadsafe(self._unwind)

    def _unwind(self) -> None:
        self.unwinding = True
        for prepare in self.before_unwinding if self._late is not None else ():
            prepare()
        for future in self.pausing.values():
            if not future.done():
                future.set_exception(Paused())
