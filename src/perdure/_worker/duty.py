"""A duty is something a worker does again and again; DutyLoop repeats one.

Each duty is one subject in one file: claiming, noticing dead workers, timers, polls. A round does what is due now and
says when to look again. The loop does the rest: it waits on the store's clock, which a test can move, wakes when the
bell rings, and survives any error of a round. Duties rely on looking; the bell only makes them look sooner. A ring
that was not heard costs at most `Clock.longest_wait`.
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

# Seconds to wait after a round that failed: the first time, and at most.
FIRST_REST = 0.05
LONGEST_REST = 2.0


def wait_after_look(look: timedelta, took: float, longest: timedelta = timedelta(seconds=0.7)) -> timedelta:
    """How long to wait after a look that took `took` seconds, so that looking uses at most a tenth of the worker's
    and the store's time. Never much longer than `longest`, because tasks wait for the next look."""
    return max(look, min(timedelta(seconds=10 * took), longest))


class Duty(Protocol):
    """Something a worker does for all tasks. Every worker has every duty. Only one of them acts on each thing that is
    due: the store accepts the write of the first and refuses the others."""

    name: str

    async def round(self) -> timedelta | None:
        """Do what is due now. Returns how long to wait until the next round; None: until the bell rings.

        Raises:
            PerdureError: the round failed; the loop logs it once, waits a little and tries again.
        """
        ...


class DutyLoop:
    """Repeats one duty until it is cancelled.

    A bell that rings all the time keeps a duty busy all the time, unless the loop is `calm`: then it rests after each
    round for twice as long as the round took.
    """

    def __init__(self, duty: Duty, clock: Clock, *, calm: bool = False) -> None:
        self.duty = duty
        self._calm = calm
        self._clock = clock
        self._bell = asyncio.Event()
        self._trouble = ""  # the error of the last round, already logged
        self._rest = FIRST_REST

    def ring(self) -> None:
        """Make the duty look now. Call it from the loop's own thread."""
        self._bell.set()

    async def run(self) -> None:
        while True:
            self._bell.clear()  # first: a ring during the round causes another round
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
