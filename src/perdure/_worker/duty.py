"""What a worker does over and over, and the one loop that does it.

A duty is one subject in one file: claiming, noticing the dead, timers, polls. It says what is to be done now and
when it is worth looking again. The loop knows the rest: it waits on the store's clock, which a test may move,
wakes when the bell rings, and outlasts whatever a round meets. Looking is what duties rely on; a bell only makes
them look sooner, and one that nobody heard costs at most `Clock.longest_wait`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from datetime import timedelta
from typing import Protocol

from perdure._ground.clock import Clock
from perdure.errors import PerdureError

log = logging.getLogger("perdure.worker")

# After a round that failed: the first wait, and the longest.
FIRST_REST = 0.05
LONGEST_REST = 2.0


def patient(look: timedelta, took: float, longest: timedelta = timedelta(seconds=0.7)) -> timedelta:
    """How long to wait after a look that took so many seconds: of a worker's time, and of the store's, looking is to
    take a tenth at most, while nothing waits for much more than the longest."""
    return max(look, min(timedelta(seconds=10 * took), longest))


class Duty(Protocol):
    """Something a worker does for all tasks. Every worker has every duty: what is due is taken by exactly one of
    them because the verb that takes it is refused to the others."""

    name: str

    async def round(self) -> timedelta | None:
        """Do what is due now; answer how long until it is worth looking again (None: only when rung).

        Raises:
            PerdureError: something is in the way; the loop tells it once, rests a little and comes back.
        """
        ...


class DutyLoop:
    """One duty, round after round, until it is cancelled.

    A bell that never stops keeps a duty at work all the time, unless it is `calm`: after a round, such a one rests
    twice as long as that took.
    """

    def __init__(self, duty: Duty, clock: Clock, *, calm: bool = False) -> None:
        self.duty = duty
        self._calm = calm
        self._clock = clock
        self._bell = asyncio.Event()
        self._trouble = ""  # what the last round met, already told
        self._rest = FIRST_REST

    def ring(self) -> None:
        """There may be something to do now. From the loop's own thread."""
        self._bell.set()

    async def run(self) -> None:
        while True:
            self._bell.clear()  # first: a ring during the round means another round
            began = time.monotonic()
            try:
                answer = await self.duty.round()
            except Exception as error:
                await self._rest_after(error)
            else:
                self._has_gone_well()
                await self._wait(answer, 2 * (time.monotonic() - began) if self._calm else 0.0)

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
        """Wait longer each time, each worker a little differently: they must not all come back at once."""
        self._tell(error)
        await asyncio.sleep(self._rest * random.uniform(0.5, 1.0))  # noqa: S311
        self._rest = min(self._rest * 2, LONGEST_REST)

    def _tell(self, error: Exception) -> None:
        what = error.what if isinstance(error, PerdureError) else f"{type(error).__name__}: {error}"
        if what == self._trouble:
            return
        self._trouble = what
        # What is no error of ours is a fault in the duty: with its traceback it can be found.
        trace = None if isinstance(error, PerdureError) else error
        log.warning("%s cannot go on: %s; trying again", self.duty.name, what, exc_info=trace)

    def _has_gone_well(self) -> None:
        if self._trouble:
            log.warning("%s goes on", self.duty.name)
        self._trouble, self._rest = "", FIRST_REST
