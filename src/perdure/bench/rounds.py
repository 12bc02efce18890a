"""Measure several things in turns, so that a busy moment of the machine falls on all of them."""

from __future__ import annotations

import gc
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from statistics import median

from perdure.bench.figures import Series

# Returns its measurement: milliseconds, or a number per second.
Contestant = Callable[[], "float | Awaitable[float]"]


async def take_turns(rounds: int, contestants: Mapping[str, Contestant], *, warm: bool = True) -> dict[str, Series]:
    """Run floor, ours, floor, ours, and so on. With `warm`, one more lap is run first and not counted.

    The garbage collector stays on, so that it scans the objects that the measured code makes.
    """
    values: dict[str, list[float]] = {name: [] for name in contestants}
    try:
        for lap in range(0 if warm else 1, rounds + 1):
            for name, contestant in contestants.items():
                gc.collect()  # garbage of the previous contestant must not be charged to this one
                gc.freeze()  # nor must the collector scan the modules of this program
                found = contestant()
                value = await found if inspect.isawaitable(found) else found
                if lap:
                    values[name].append(value)
    finally:
        gc.unfreeze()
    return {name: Series(found) for name, found in values.items()}


def middle_ms(act: Callable[[], object], times: int) -> float:
    """The median of some calls, in milliseconds."""
    return median(_ms(act) for _ in range(times))


def _ms(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


async def middle_ms_of(act: Callable[[], Awaitable[object]], times: int) -> float:
    """As `middle_ms`, for an async call."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        await act()
        taken.append((time.perf_counter() - began) * 1000)
    return median(taken)
