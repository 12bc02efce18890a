"""The durable functions by which workers are measured. Every process of a measurement imports them."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from perdure import durable, pause, step

begun: list[float] = []  # when a step of `held` began in this process, in seconds since 1970


@step
async def one(number: int) -> int:
    return number


@durable(name="perdure.bench.errand")
async def errand(number: int) -> int:
    """One step, from start to finish."""
    return await one(number)


@step
async def hold(path: str) -> None:
    """The first call notes that it has begun, and never returns; the next call returns at once."""
    begun.append(time.time())
    if _is_first(path):
        await asyncio.Event().wait()


def _is_first(path: str) -> bool:
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@durable(name="perdure.bench.held")
async def held(path: str) -> None:
    await hold(path)


@durable(name="perdure.bench.nap")
async def nap(seconds: float) -> float:
    """Wait, then return the moment it was resumed, in seconds since 1970."""
    await pause.wait(seconds=seconds)
    return time.time()
