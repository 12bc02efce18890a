"""A duty is something a worker does again and again; DutyLoop repeats one.

Each duty is one subject in one file: claiming, noticing dead workers, timers, polls. A round does what is due now and
says when to look again. The loop does the rest: it waits on the store's clock, which a test can move, wakes when the
bell rings, and survives any error of a round. Duties rely on looking; the bell only makes them look sooner.

A duty with nothing to do rests: while nothing is written to the store, and nothing is due, it does not look. A write
that the bell did not tell of costs at most `LONGEST_IDLE`. Where other processes are not heard, no duty rests.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple, Protocol

from perdure._ground.clock import Clock
from perdure.errors import PerdureError

log = logging.getLogger("perdure.worker")

# Seconds to wait after a round that failed: the first time, and at most.
FIRST_REST = 0.05
LONGEST_REST = 2.0
# The longest time without a look for a duty with nothing to do.
LONGEST_IDLE = timedelta(seconds=5)
# A wall clock that moved by so much against boottime was set: what is due by it may be due now.
_SET_MS = 50


class Rest(NamedTuple):
    """A round's answer: there is nothing to do until something is written to the store."""

    look: timedelta  # how long to wait at least, also after a write
    due: timedelta | None = None  # until something is due that is known now
    has_changed: Callable[[], bool] | None = None  # whether something in this process calls for a look


def wait_after_look(look: timedelta, took: float, longest: timedelta = timedelta(seconds=0.7)) -> timedelta:
    """The time to wait after a look that took `took` seconds, so that looking uses at most a tenth of the worker's
    and the store's time. Never much longer than `longest`, because tasks wait for the next look."""
    return max(look, min(timedelta(seconds=10 * took), longest))


class Since(NamedTuple):
    """When a round began. The clock can be moved while it reads the store."""

    boottime: float
    set_by: float  # how far wall time was from it, in milliseconds


class Duty(Protocol):
    """Something a worker does for all tasks. Every worker has every duty. Only one of them acts on each thing that is
    due: the store accepts the write of the first and refuses the others."""

    name: str

    async def round(self) -> timedelta | Rest | None:
        """Do what is due now. Returns how long to wait until the next round; None: until the bell rings.

        Raises:
            PerdureError: the round failed; the loop logs it once, waits a little and tries again.
        """
        ...


class DutyLoop:
    """Repeats one duty until it is cancelled.

    A bell that rings all the time keeps a duty busy all the time, unless the loop is `calm`: then it rests after each
    round for twice as long as the round took. `hears` says whether `stir` is called for every write to the store; by
    default it is not, and a duty that could rest looks as often as any other.
    """

    def __init__(
        self, duty: Duty, clock: Clock, *, calm: bool = False, hears: Callable[[], bool] = lambda: False
    ) -> None:
        self.duty = duty
        self._calm, self._hears = calm, hears
        self._clock = clock
        self._bell = asyncio.Event()
        self._is_stirred = self._is_resting = False
        self._trouble = ""  # the error of the last round, already logged
        self._rest = FIRST_REST

    def ring(self) -> None:
        """Make the duty look now. Call it from the loop's own thread."""
        self._bell.set()

    def stir(self) -> None:
        """Something was written to the store: a duty that rests looks. Call it from the loop's own thread."""
        self._is_stirred = True
        if self._is_resting:
            self._bell.set()

    async def run(self) -> None:
        while True:
            self._bell.clear()  # first: a ring during the round causes another round
            self._is_stirred = False
            began, since = time.monotonic(), Since(self._clock.boottime(), self._set_by())
            try:
                answer = await self.duty.round()
            except Exception as error:
                await self._rest_after(error)
            else:
                self._has_gone_well()
                pause = 2 * (time.monotonic() - began) if self._calm else 0.0
                if isinstance(answer, Rest):
                    await self._be_idle(answer, since, pause)
                else:
                    await self._wait(answer, pause)

    async def _be_idle(self, answer: Rest, since: Since, pause: float) -> None:
        """Wait until there may be something to do, by what the round knew that began then."""
        due = LONGEST_IDLE if answer.due is None else min(answer.due, LONGEST_IDLE)
        wakes_at = since.boottime + due.total_seconds()
        await self._wait(min(answer.look, due), pause)
        self._is_resting = True
        try:
            while not (self._bell.is_set() or self._is_stirred or self._clock.boottime() >= wakes_at):
                is_known = self._hears() and abs(self._set_by() - since.set_by) < _SET_MS
                if not is_known or (answer.has_changed is not None and answer.has_changed()):
                    return
                await self._wait(timedelta(seconds=max(wakes_at - self._clock.boottime(), 0.0)), 0.0)
        finally:
            self._is_resting = False

    def _set_by(self) -> float:
        """The difference between wall time and boottime, in milliseconds."""
        return self._clock.now_ms() - self._clock.boottime() * 1000

    async def _wait(self, answer: timedelta | None, rest: float) -> None:
        longest = self._clock.longest_wait
        seconds = longest if answer is None else min(max(answer.total_seconds(), 0.0), longest)
        if rest and seconds:
            await asyncio.sleep(min(rest, seconds))
        try:
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        except TimeoutError:
            return

    async def _rest_after(self, error: Exception) -> None:
        """Wait longer each time, and a random time, so that workers do not all come back at once."""
        self._tell(error)
        await asyncio.sleep(self._rest * random.uniform(0.5, 1.0))  # noqa: S311
        self._rest = min(self._rest * 2, LONGEST_REST)

    def _tell(self, error: Exception) -> None:
        what = error.what if isinstance(error, PerdureError) else f"{type(error).__name__}: {error}"
        if what == self._trouble:
            return
        self._trouble = what
        # An error that is not ours is a bug in the duty: log its traceback.
        trace = None if isinstance(error, PerdureError) else error
        log.warning("%s failed: %s; trying again", self.duty.name, what, exc_info=trace)

    def _has_gone_well(self) -> None:
        if self._trouble:
            log.warning("%s works again", self.duty.name)
        self._trouble, self._rest = "", FIRST_REST
