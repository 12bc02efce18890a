"""The two clocks perdure reads, and one that tests can move.

Wall time (`now`) is for people and deadlines: it can jump. Boottime is for leases: it runs while the machine sleeps and
never jumps. Nothing else in perdure reads the time.

`PERDURE_TEST_CLOCK` names a file holding both times; every process of a test maps it, so leases,
timers and waits of real processes are moved by `MovableClock.advance`, not waited for.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

from perdure.errors import RecordDamaged

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_TIMES = struct.Struct("<qq")  # wall milliseconds, boottime microseconds
# How often a waiting thread looks whether a test has moved the clock.
_LOOK = 0.002


class Clock(Protocol):
    # Real seconds after which a waiter for a moment of this clock checks it again. So it notices a machine that slept,
    # or a test that moved the clock, no later than this.
    longest_wait: float

    def now_ms(self) -> int:
        """Wall time in milliseconds since 1970, UTC."""
        ...

    def boottime(self) -> float:
        """Seconds on a clock that never jumps and runs during sleep."""
        ...

    def wait(self, seconds: float, bell: threading.Event) -> bool:
        """Block until `bell` rings (True) or `seconds` of this clock have passed (False)."""
        ...


class SystemClock:
    longest_wait = 1.0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    # Without a line of Python: each effect asks twice.
    boottime = staticmethod(partial(time.clock_gettime, _BOOT))

    def wait(self, seconds: float, bell: threading.Event) -> bool:
        return bell.wait(seconds)


class MovableClock:
    """A clock that stands still until it is moved; every process that maps the same file shares it."""

    path: Path

    longest_wait: float = 0.02

    def __init__(self, path: str | Path, start: datetime | None = None) -> None:
        self.path = Path(path)
        if not self.path.exists():
            first = int((start or datetime(2030, 1, 1, tzinfo=UTC)).timestamp() * 1000)
            fresh = self.path.with_name(f"{self.path.name}.{os.getpid()}")
            fresh.write_bytes(_TIMES.pack(first, 1_000_000_000))
            fresh.replace(self.path)
        import mmap  # only tests move a clock

        with self.path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _TIMES.size)

    def now_ms(self) -> int:
        wall: int = _TIMES.unpack(self._map[:])[0]
        return wall

    def boottime(self) -> float:
        boot: int = _TIMES.unpack(self._map[:])[1]
        return boot / 1_000_000

    def advance(self, by: timedelta | None = None, **parts: float) -> None:
        """Move both clocks: `advance(hours=8)`."""
        step = by if by is not None else timedelta(**parts)
        wall, boot = _TIMES.unpack(self._map[:])
        micros = step // timedelta(microseconds=1)
        self._map[:] = _TIMES.pack(wall + micros // 1000, boot + micros)

    def set_wall(self, by: timedelta) -> None:
        """Set wall time forward or back, as an administrator does; boottime never jumps."""
        wall, boot = _TIMES.unpack(self._map[:])
        self._map[:] = _TIMES.pack(wall + by // timedelta(milliseconds=1), boot)

    def wait(self, seconds: float, bell: threading.Event) -> bool:
        end = self.boottime() + seconds
        while self.boottime() < end:
            if bell.wait(_LOOK):
                return True
        return bell.is_set()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_LAST_MS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


def from_environment() -> Clock:
    """The system's clock, or the movable one a test has named."""
    path = os.environ.get("PERDURE_TEST_CLOCK")
    return MovableClock(path) if path else SystemClock()


def moment(ms: int) -> datetime:
    """The moment that a record names.

    Raises:
        RecordDamaged: no calendar has it.
    """
    # Compared, not tried: what is raised here may come from a signal's handler, and is then not ours to change.
    if type(ms) is not int or not _FIRST_MS <= ms <= _LAST_MS:
        raise RecordDamaged("a moment", f"{ms!r} milliseconds since 1970 are not in the calendar")
    return datetime.fromtimestamp(ms / 1000, UTC)


def to_ms(when: datetime) -> int:
    """Milliseconds of an aware moment; a naive one would mean another moment on another machine."""
    if when.tzinfo is None:
        from perdure.errors import InvalidInput

        raise InvalidInput(
            f"the moment {when.isoformat()} has no time zone", do="use datetime.now(UTC) or give it a tzinfo"
        )
    return round(when.timestamp() * 1000)
