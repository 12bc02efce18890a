"""A line about resuming: the agent of the demo is killed at statement nine; the next process begins statement ten."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.bench.figures import Budget, Figure, figure_of
from perdure.bench.rounds import take_turns
from perdure.bench.stage import Plot
from perdure.demo import Stage, agent_on, running_world, set_stage

_SIZE = 1_000_000
_MOST_MS = 5_000.0


async def resuming(plot: Plot, quick: bool) -> list[Figure]:
    """The time from the start of a new process to its first new statement: claim, find the units, replay the
    journal."""
    folder = plot.folder / "story"
    with _killed(plot, folder) as stage:
        rounds = await take_turns(
            1 if quick else 5,
            {"floor": _imported, "ours": lambda: asyncio.to_thread(_resumed, stage)},
            warm=not quick,
        )
    shutil.rmtree(folder)
    budget = Budget(_MOST_MS, "≤ 5 s")
    floor = "a process that imports the same"
    return [
        figure_of("resuming", "killed at statement 9, continued at 10", "ms", rounds, floor_is=floor, budget=budget)
    ]


@contextmanager
def _killed(plot: Plot, folder: Path) -> Iterator[Stage]:
    """Kill the agent after nine statements; everything that it had open stays."""
    from perdure._ground.config import find_address
    from perdure._runtime import end_keeper

    with running_world() as world:
        dsn = plot.url if plot.engine == "postgres" else str(plot.folder / "story.db")
        stage = set_stage(folder, plot.url, world.address, dsn, size=_SIZE)
        try:
            with agent_on(stage, waits=True) as first:
                first.until("waiting")
                first.kill()
            yield stage
        finally:
            end_keeper(find_address(plot.url))


def _resumed(stage: Stage) -> float:
    """Let the agent continue to the place where it waits, and kill it there again."""
    began = time.perf_counter()
    with agent_on(stage, waits=True) as next_one:
        next_one.until("waiting")
        taken = time.perf_counter() - began
        next_one.kill()
    return taken * 1000


def _imported() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import perdure.demo.agent, perdure._runtime.task_runtime"], check=True)
    return (time.perf_counter() - began) * 1000
