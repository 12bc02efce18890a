"""End the units of finished tasks, after their grace.

The keeper cannot read a store; a small program of perdure can (cli/sweeper.py). While units live, the keeper runs it
regularly, and it reports for each task whether it has ended, and how long ago. Clients tell the keeper the store's
address. The anchor holds it in memory, because it may contain a password. A task that the program cannot find out
about counts as living: nothing is ended on a guess.

A store in memory belongs to one process: when that process has ended, so have its tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

from perdure.keeper.core.limits import GRACE
from perdure.keeper.core.unit_kinds import KeeperCore
from perdure.keeper.core.units import Unit
from perdure.keeper.process import memory_file, processes
from perdure.keeper.session import hold_clock as holdclock

log = logging.getLogger("perdure.keeper")

EVERY_SECONDS = 60.0
# How long units live on after their task, unless they were given another grace. A failed task may be resumed.
GRACES = {"completed": 300.0, "cancelled": 300.0, "gone": 300.0, "failed": 86_400.0}
_NAME = "store"
_OF_PROCESS = "process:"
_ANSWER_SECONDS = 60.0
_START = "import sys; sys.path.insert(0, sys.argv[1]); from perdure.cli.sweeper import main; main()"
_SOURCE = str(Path(__file__).parents[3])


class Finished:
    def __init__(self, keeper: KeeperCore) -> None:
        self._keeper = keeper
        self._store = ""
        self._asked_at = holdclock.seconds()
        self._asking: asyncio.Task[None] | None = None

    def recover(self) -> None:
        with contextlib.suppress(KeyError):
            fd, _ = self._keeper.anchored.get(_NAME)
            self._store = os.pread(fd, os.fstat(fd).st_size, 0).decode()
            os.close(fd)

    def learn(self, store: str) -> None:
        """Learn where the store of this keeper's tasks is, from a client that has opened it."""
        if store and store != self._store:
            self._store = store
            fd = memory_file()
            os.write(fd, store.encode())
            self._keeper.anchored.put(_NAME, fd)
            os.close(fd)

    def watch(self) -> None:
        """Called regularly; asks when it is time to."""
        alive = [unit for unit in self._keeper.units if unit.is_alive]
        if self._store.startswith(_OF_PROCESS):
            self._watch_process(alive)
        elif self._store and alive and self._asking is None and holdclock.seconds() - self._asked_at >= EVERY_SECONDS:
            self._asked_at = holdclock.seconds()
            self._asking = self._keeper.loop.create_task(self._ask())

    def _watch_process(self, alive: list[Unit]) -> None:
        """A store in memory has gone with its process: so do its units, and then their keeper."""
        if processes.is_same(*map(int, self._store.split(":")[1:])):
            return
        self._end(alive, "its store ended with its process")
        if not alive:
            shutil.rmtree(self._keeper.home, ignore_errors=True)
            self._keeper.stop()

    async def _ask(self) -> None:
        try:
            alive = [unit for unit in self._keeper.units if unit.is_alive]
            told = await self._told(sorted({unit.owner.uid for unit in alive}))
            for unit in alive:
                state, seconds = told.get(unit.owner.uid, (None, 0.0))
                if self._is_due(unit, state, seconds):
                    self._end([unit], "its task is gone" if state == "gone" else f"its task has {_ENDED[state]}")
        except (OSError, ValueError, TypeError, TimeoutError) as error:
            log.warning("the tasks of units could not be looked at: %s", error)
        finally:
            self._asking = None

    def _is_due(self, unit: Unit, state: str | None, seconds: float) -> bool:
        if state == "gone":  # it is not known since when: counted from the first time it was missing
            first = unit.facts.setdefault("task_gone_at", holdclock.seconds())
            seconds = holdclock.seconds() - first
        else:
            unit.facts.pop("task_gone_at", None)
        return state in GRACES and seconds >= unit.limits.get(GRACE, GRACES[state])

    def _end(self, units: list[Unit], why: str) -> None:
        for unit in units:
            if unit.is_alive:
                unit.facts["why"] = why
                self._keeper.save(unit)
                self._keeper.end(unit)

    async def _told(self, uids: list[str]) -> dict[str, Any]:
        """Of each task that has ended: how, and how many seconds ago."""
        program = [self._keeper.argv[0], "-I", "-c", _START, _SOURCE]
        child = await asyncio.create_subprocess_exec(
            *program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PERDURE_URL": self._store},
        )
        try:
            asked = json.dumps(uids).encode()
            said, _ = await asyncio.wait_for(child.communicate(asked), _ANSWER_SECONDS)
        finally:
            if child.returncode is None:
                child.kill()
        if child.returncode:
            raise ValueError(f"exit code {child.returncode}; its output is above")
        told: dict[str, Any] = json.loads(said)
        return told


_ENDED = {"completed": "completed", "cancelled": "been cancelled", "failed": "failed"}
