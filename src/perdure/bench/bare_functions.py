"""The work of the measured durable functions, done by the bare prototype of the pipeline."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from perdure.bench.inside import SMALL
from perdure.bench.rounds import Contestant


class BareFunctions:
    """Tasks that start, append and finish; `pipeline` is None if this perdure was installed without the prototype."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline, self._number = pipeline, 0

    def beside(self, ours: dict[str, Contestant], prototype: Contestant) -> dict[str, Contestant]:
        """The contestants, with the prototype if it is installed."""
        return {**ours, "prototype": prototype} if self._pipeline is not None else ours

    async def chain_ms(self, many: int, *, each_is_waited_for: bool) -> float:
        """The milliseconds that one task with this many entries takes, one entry after the other."""
        began = time.perf_counter()
        await self._task(many, is_crowded=False, each_is_waited_for=each_is_waited_for)
        return (time.perf_counter() - began) * 1000

    async def tasks_seconds(self, tasks: int, entries: int) -> float:
        """The seconds that this many tasks take at once."""
        began = time.perf_counter()
        await asyncio.gather(*(self._task(entries, is_crowded=entries > 1) for _ in range(tasks)))
        return time.perf_counter() - began

    async def _task(self, entries: int, *, is_crowded: bool, each_is_waited_for: bool = False) -> None:
        pipeline = self._pipeline
        self._number += 1
        id = f"bare-{self._number}"
        await pipeline.start(id)
        for position in range(entries):
            if each_is_waited_for:
                await pipeline.append_and_wait(id, position, SMALL)
            else:
                pipeline.append(id, position, SMALL)
            if is_crowded:
                await asyncio.sleep(0)
        await pipeline.finish(id)
