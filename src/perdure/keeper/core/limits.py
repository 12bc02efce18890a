"""End units that exceed a limit: of time, of silence, or of memory.

Limits are checked every few seconds. Memory is the resident size of all processes of a unit. A unit can exceed its
limit for a moment before that is noticed; where that matters, run the keeper in a cgroup with its own limit.
"""

from __future__ import annotations

import time
from typing import Protocol

from perdure.keeper.core.unit_kinds import KeeperCore
from perdure.keeper.core.units import Unit
from perdure.keeper.process import processes

EVERY_SECONDS = 2.0
SECONDS, IDLE_SECONDS, MEMORY = "seconds", "idle_seconds", "memory"
GRACE = "grace"  # how long it lives on after its task: see finished_tasks.py
NAMES = (SECONDS, IDLE_SECONDS, MEMORY, GRACE)


class Watchful(Protocol):
    def watch(self) -> None: ...


class Limited(KeeperCore, Protocol):
    """The keeper, with its parts that are checked together with limits."""

    @property
    def door(self) -> Watchful: ...

    @property
    def folder(self) -> Watchful: ...

    @property
    def finished(self) -> Watchful: ...

    def tidy(self) -> None: ...


class Limits:
    def __init__(self, keeper: Limited) -> None:
        self._keeper = keeper

    def watch(self) -> None:
        # First of all: whatever fails now, a full disk for one, is tried again.
        self._keeper.loop.call_later(EVERY_SECONDS, self.watch)
        self._keeper.door.watch()
        self._keeper.folder.watch()
        for unit in self._keeper.units:
            with self._keeper.alone("a limit"):
                if unit.is_alive and unit.limits and (what := self._passed(unit)):
                    unit.facts["why"] = f"it had passed its limit: {what}"
                    self._keeper.end(unit)
                    self._keeper.save(unit)
        with self._keeper.alone("tidying"):
            self._keeper.tidy()
        self._keeper.finished.watch()

    def _passed(self, unit: Unit) -> str | None:
        limits, held = unit.limits, self._keeper.held.get(unit.uid)
        if SECONDS in limits and time.time() - unit.made_at > limits[SECONDS]:
            return f"{limits[SECONDS]:g} s"
        if IDLE_SECONDS in limits and held and self._keeper.loop.time() - held.is_idle_since > limits[IDLE_SECONDS]:
            return f"{limits[IDLE_SECONDS]:g} s without input or output"
        if MEMORY in limits:
            used = processes.memory_of(processes.of_unit(unit.pid, unit.uid, self._keeper.anchor_pid))
            if used > limits[MEMORY]:
                return f"{limits[MEMORY]:,.0f} bytes of memory (it had {used:,})"
        return None
