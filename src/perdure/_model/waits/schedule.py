"""When a schedule's ticks are, which of them are due, and what becomes of those that were missed. Pure but for the
table of time zones.

A tick is one moment of a schedule, and its task's id is made from it. Ticks at or before `last` are over, whatever the
clock shows afterwards: setting a clock back repeats none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from perdure._ground.clock import moment, to_ms
from perdure._ground.cron import next_cron
from perdure._ground.durations import Duration, require_timedelta
from perdure.errors import InvalidInput

Missed = Literal["skip", "once", "all"]
MISSED: tuple[Missed, ...] = get_args(Missed)

# A tick that is noticed this late at most is on time, and not missed.
GRACE_MS = 60_000
# So many are made up for in one go; the rest follow.
MOST_AT_ONCE = 100
# Of a schedule that ticks every second and was forgotten for a year, so many are looked through at most.
_FURTHEST = 100_000
SHORTEST = timedelta(seconds=1)


class Plan(Struct, frozen=True, kw_only=True):
    """A stored schedule: what it starts, when, and its position."""

    function: str
    version: int
    module: str = ""
    arguments: bytes
    queue: str
    priority: int
    cron: str = ""
    zone: str = "UTC"
    every_ms: int = 0
    anchor: int = 0  # what `every` is counted from
    missed: Missed = "once"
    overlaps: bool = False  # whether a tick may start while the task of an earlier one is under way
    is_paused: bool = False
    last: int = 0  # the newest tick that is over, fired or not
    runs: int = 0
    skipped: int = 0
    open: Sequence[str] = ()  # tasks of ticks that have not been seen to end, oldest first
    state: Any = None  # what the newest run that completed has left to the next

    def next_after(self, ms: int) -> int | None:
        """The next tick after this moment."""
        if self.every_ms:
            return self.anchor + ((ms - self.anchor) // self.every_ms + 1) * self.every_ms
        found = next_cron(self.cron, self.zone, moment(ms))
        return None if found is None else to_ms(found)

    def due(self, now: int) -> tuple[list[int], Plan]:
        """The ticks to fire now, and the plan once they are fired.

        Runs that must not overlap come one after the other: a tick that falls into a run waits for its end.
        """
        if self.open and not self.overlaps:
            return [], self
        most = MOST_AT_ONCE if self.overlaps else 1
        ticks: list[int] = []
        reached, count = self.last, 0
        while (tick := self.next_after(reached)) is not None and tick <= now and count < _FURTHEST:
            reached, count = tick, count + 1
            ticks.append(tick)
            if self.missed == "all" and len(ticks) >= most:
                break
            if self.missed != "all":
                del ticks[:-1]
        if self.missed == "skip" and ticks and now - ticks[-1] > GRACE_MS:
            ticks = []
        after = replace(self, last=reached, runs=self.runs + len(ticks), skipped=self.skipped + count - len(ticks))
        return ticks, after


def tick_id(schedule: str, ms: int) -> str:
    """The id of a tick's task: two workers that fire the same tick start the same task."""
    return f"{schedule}@{tick_name(ms)}"


def tick_name(ms: int) -> str:
    """`2026-03-29T07:00:00Z`; with milliseconds where a tick has them."""
    when = moment(ms)
    spec = "milliseconds" if ms % 1000 else "seconds"
    return when.isoformat(timespec=spec).replace("+00:00", "Z")


def check_missed(missed: object) -> None:
    if missed not in MISSED:
        raise InvalidInput(f"missed is {missed!r}", do="choose skip, once or all")


def check_every(every: Duration) -> int:
    """The length in milliseconds."""
    length = require_timedelta("every", every)
    if length < SHORTEST:
        raise InvalidInput(f"every is {every}; it must be at least 1 s")
    return length // timedelta(milliseconds=1)


def check_cron(expression: object, zone: object) -> None:
    """Raises: InvalidInput: the expression cannot be read, or is never due."""
    if not isinstance(expression, str) or not isinstance(zone, str):
        raise InvalidInput("a cron expression and a time zone are text")
    if next_cron(expression, zone, datetime(2026, 1, 1, tzinfo=UTC)) is None:
        raise InvalidInput(f"{expression!r} never comes round")
