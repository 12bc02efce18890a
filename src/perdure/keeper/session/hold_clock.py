"""The clock of hold limits, which runs while the machine sleeps. Tests name a file that they move instead."""

from __future__ import annotations

import mmap
import os
import time
from functools import lru_cache
from struct import Struct

_TIMES = Struct("<qq")  # wall milliseconds, boottime microseconds
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def seconds() -> float:
    path = _moved()
    if not path:
        return time.clock_gettime(_BOOT)
    boot: int = _TIMES.unpack(_shared(path)[: _TIMES.size])[1]
    return boot / 1_000_000


def longest_wait() -> float:
    """The longest wait before the clock is read again, because moving a clock wakes no waiter."""
    return 0.005 if _moved() else 60.0


@lru_cache(maxsize=1)
def _moved() -> str:
    """The file, as it is named when the time is first asked for."""
    return os.environ.get("PERDURE_TEST_CLOCK", "")


@lru_cache(maxsize=1)
def _shared(path: str) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), _TIMES.size, prot=mmap.PROT_READ)
