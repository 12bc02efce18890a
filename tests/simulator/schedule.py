"""One schedule: hostile programs, processes that die, stand still and fail, and what must hold in the end.

The programs, the people who answer them and the judge are those of tests/torture/hostile.py, whose processes are real.
Here the processes are simulated, so that a schedule takes milliseconds, and its seed repeats it exactly.

What holds at every commit is checked here: one writer for each task, and no entry of a journal written twice.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

from perdure._durable.attempt import pipeline
from perdure._durable.attempt.calls import recorded_calls, step_walk
from perdure._durable.control import control_watch
from perdure._durable.effects import settlement
from perdure._durable.journal import task_journal
from perdure._ground import bridge, ids, traces
from perdure._ground import crash_points as crash
from perdure._ground.bridge import drive
from perdure._store import loop_waker, store
from perdure._store.memory.tables import Lease, Tables
from perdure._store.write import Write
from perdure._tasks import leases
from perdure._worker import drain, worker_records
from perdure._worker.losses import reaper
from perdure._worker.losses.process_watch import ProcessWatch
from perdure._worker.worker import Worker
from perdure.errors import PerdureError
from tests.simulator.machine import Machine
from tests.simulator.process import Killed, Process, Readers, Weather, leave_all, now_running, operator
from tests.torture import hostile, hostile_programs
from tests.torture.hostile_programs import (
    APPENDED,
    PATIENT,
    SENT,
    in_memory,
    kept_in_memory,
    play,
)

LEDGER = "simulated"
_COLLECTED_EVERY = 20
_PLACES = (
    *("effect.before_intent", "effect.intended", "effect.done", "effect.recorded", "span.marked", "journal.recorded"),
    *("committer.before_commit", "committer.after_commit", SENT, APPENDED),
)
# Those who ask whether another process is dead.
_PROVERS = (reaper, worker_records, drain, leases, settlement, task_journal)


def run(seed: int, *, kills: int = 4) -> int:
    """Play one schedule; its trace, a digest of every turn that a process had.

    Raises:
        AssertionError: something does not hold.
    """
    with forgetting_the_dead(collects=seed % _COLLECTED_EVERY == 0):
        return _play(seed, kills)


@contextmanager
def forgetting_the_dead(*, collects: bool = True) -> Iterator[None]:
    """What dead processes left behind is unwound when it is collected, and what it raises then concerns nobody."""
    hook = sys.unraisablehook
    sys.unraisablehook = lambda about: None
    try:
        yield
    finally:
        if collects:
            gc.collect()
        sys.unraisablehook = hook


def _play(seed: int, kills: int) -> int:
    rng = random.Random(seed)
    machine = Machine(rng)
    stage = Stage(machine, rng)
    with simulated(machine, stage, seed):
        app = operator(machine, stage.tables, stage.watch)
        try:
            few: dict[str, Any] = {"workers": 2, "programs": rng.randint(1, 2), "lengths": (1, 4), "patience": 30.0}
            hostile.Hostility(rng, app, stage, LEDGER, **few).rage(kills)  # type: ignore[arg-type]
        finally:
            stage.end()
            drive(app.close())
    return machine.trace


class Stage:
    """The processes of a schedule, and what happens to them: what `Machine` of hostile.py is for real ones."""

    def __init__(self, machine: Machine, rng: random.Random) -> None:
        self._machine, self._rng = machine, rng
        self.clock = machine.clock
        self.tables = Tables()
        self.trouble = rng.choice(("zombies", "jumps", "cuts"))
        self.proof_after = rng.choice((0.0, 0.0, 0.3, 1e9))  # seconds until others can know that a process is dead
        self.returned: dict[str, Any] = {}
        self.kills = 0
        self.is_calm = False
        self._calm_passes = 0
        self.duties_left_out = rng.random() < 0.8
        self._weather = Weather(rng)
        self._starts: dict[str, tuple[Any, ...]] = {}
        self._alive: dict[str, Process] = {}
        self._leaving: dict[int, asyncio.Event] = {}
        self._doomed: dict[int, list[Any]] = {}  # by process: a place, and how often it may still be passed
        self._died: dict[int, float] = {}
        self._processes: list[Process] = []
        self._entries: dict[tuple[str, int, int], bytes] = {}
        self.violations: list[str] = []

    # ── processes ───────────────────────────────────────────────────────────────────────────────

    def add(self, name: str, *start: Any) -> None:
        self._starts[name] = start
        self._begin(name)

    def _begin(self, name: str) -> None:
        function, *arguments = self._starts[name]
        process = Process(self._machine, len(self._processes) + 1, self.tables, self._weather, self.watch)
        self._processes.append(process)
        self._leaving[process.number] = asyncio.Event()  # it can be told to leave before its first turn
        if not self.is_calm and self._rng.random() < 0.5:
            self._doomed[process.number] = [self._rng.choice(_PLACES), self._rng.randint(1, 6)]
        process.start(self._work if function is hostile.work else partial(self._run_here, arguments))
        self._alive[name] = process

    async def _work(self, process: Process) -> None:
        app = process.open()
        hostile_programs.app_here[:] = [app]
        async with app.worker():
            await self._leaving[process.number].wait()
        await app.close()

    async def _run_here(self, arguments: list[Any], process: Process) -> Any:
        id, ledger, block, saves = arguments
        app = process.open()
        hostile_programs.app_here[:] = [app]
        while True:
            try:
                return await app.run(id, play.options(config=PATIENT), ledger, block, saves)
            except PerdureError:
                await asyncio.sleep(0.2)  # another process has the lease, or the store is out of reach

    def is_dead(self, process: Any, *, same_machine: bool) -> bool:
        died = self._died.get(process.pid)
        return died is not None and self._machine.now >= died + self.proof_after

    def passes(self, place: str) -> None:
        """A process comes to a place where it may have to die."""
        if not now_running:
            return
        process = now_running[0]
        doom = self._doomed.get(process.number)
        if not process.is_alive or doom is None or doom[0] != place:
            return
        doom[1] -= 1
        if doom[1] <= 0:
            self._kill(process)
            raise Killed

    def _kill(self, process: Process) -> None:
        process.kill()
        self._died.setdefault(process.number, self._machine.now)

    # ── what hostile.py asks of its machine ─────────────────────────────────────────────────────

    @property
    def passed(self) -> float:
        return self._machine.now

    def let_pass(self, seconds: float, speed: float = 1.0) -> None:
        self._run(seconds)
        self.revive()
        if self.is_calm:
            self._calm_passes += 1
            if self._calm_passes % 32 == 0:
                # Somebody waits until an effect of a lost process is certain to be over: the machine sleeps meanwhile.
                self.clock.advance(minutes=20)

    def _run(self, seconds: float) -> None:
        try:
            self._machine.run_until(self._machine.now + seconds)
        finally:
            leave_all()
        assert not self.violations, self.violations[0]

    def make_trouble(self) -> None:
        self.let_pass(self._rng.choice((0.002, 0.02, 0.2, 0.6)) * self._rng.random())
        if self._rng.random() < 0.4:
            {"zombies": self._stop_one, "jumps": self._jump, "cuts": self._cut}[self.trouble]()
        name = self._rng.choice(sorted(self._alive))
        self._end(name)

    def _stop_one(self) -> None:
        process = self._alive[self._rng.choice(sorted(self._alive))]
        process.stopped_until = self._machine.now + self._rng.choice((0.05, 1.0, 12.0)) * self._rng.random()
        self.let_pass(self._rng.uniform(0.0, 1.0))

    def _jump(self) -> None:
        self.clock.advance(minutes=self._rng.uniform(0, 30))

    def _cut(self) -> None:
        """The store is out of reach for a moment."""
        before, self._weather.fails = self._weather.fails, 0.9
        self.let_pass(self._rng.uniform(0.0, 0.3))
        self._weather.fails = before

    def revive(self) -> None:
        """Take what ended processes returned, and start again those that died."""
        for name, process in list(self._alive.items()):
            if not process.is_alive or process.has_ended:
                self._end(name)

    def _end(self, name: str) -> None:
        process = self._alive[name]
        self._kill(process)
        self.kills += 1
        function = self._starts[name][0]
        if process.has_ended and function is not hostile.work:
            self.returned[name] = process.result()
            del self._alive[name]
            return
        if process.has_ended:
            process.result()  # a worker does not end by itself: it raises what ended it
        self._begin(name)

    def be_calm(self) -> None:
        self.is_calm = self._weather.is_calm = True
        self._doomed.clear()
        for process in self._alive.values():
            process.stopped_until = min(process.stopped_until, self._machine.now + 12.0)

    def let_go(self) -> None:
        for name, process in self._alive.items():
            if self._starts[name][0] is hostile.work:
                process.loop.call_soon(self._leaving[process.number].set)
        end = self._machine.now + 60.0
        while self._machine.now < end and not all(one.has_ended for one in self._alive.values()):
            self._run(0.5)
        for name, process in self._alive.items():
            assert process.has_ended, f"{name} does not end"
            value = process.result()
            if self._starts[name][0] is not hostile.work:
                self.returned[name] = value

    def tell_stacks(self) -> None:
        """A seed that fails can be run again: nothing has to be told of it now."""

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.loop.end()

    # ── what holds at every commit ──────────────────────────────────────────────────────────────

    def watch(self, writes: Sequence[Write], rows: Sequence[Any], before: Mapping[str, Lease]) -> None:
        """Look at what was just committed; `before` are the leases before it. A violation is kept, not raised: the
        process that committed would take it for an error of its store."""
        for write, row in zip(writes, rows, strict=False):
            params, uid = write.params, write.params.get("uid")
            self._machine.note(write.verb, row is not None)
            if row is None or uid is None:
                continue
            if write.fence is not None:
                mine = (params["epoch"], params["worker"])
                owners = [one[:2] for one in (before.get(uid), self.tables.leases.get(uid)) if one is not None]
                if mine not in owners:
                    self.violations.append(f"{write.verb} of epoch {mine[0]} was written; the lease was {owners}")
            if write.verb == "append_entry":
                self._watch_entry(uid, self.tables.tasks[uid].line, params)

    def _watch_entry(self, uid: str, line: int, params: Mapping[str, Any]) -> None:
        position: int = params["position"]
        place = (uid, line, position)
        if self._entries.setdefault(place, params["entry"]) is not params["entry"]:
            self.violations.append(f"entry {position} of {uid} was written twice")
        if position > 1 and line == 1 and (line, position - 1) not in self.tables.journal[uid]:
            self.violations.append(f"entry {position} of {uid} has none before it")


# ── the seams ────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def simulated(machine: Machine, stage: Stage, seed: int) -> Iterator[None]:
    """Time, chance, threads and the ledger are the machine's while the block lasts."""
    notes: list[list[str]] = []

    def take_note(words: list[str]) -> None:
        if now_running and not now_running[0].is_alive:
            raise Killed
        machine.note(*words)
        notes.append(words)

    def now() -> float:
        return machine.now

    entropy = random.Random(seed ^ 0x5EED)
    chance = random.getstate()
    tails = list(ids._tails)
    ids._tails.clear()
    random.seed(seed)
    in_memory[LEDGER], kept_in_memory[LEDGER] = take_note, notes
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        with ExitStack() as stack:
            patch = stack.enter_context
            for module in (time, step_walk, recorded_calls, pipeline):
                patch(mock.patch.object(module, "perf_counter", now))
            patch(mock.patch.object(time, "monotonic", now))
            patch(mock.patch.object(time, "sleep", return_value=None))
            patch(mock.patch.object(hostile_programs, "BEAT_SECONDS", 0.1))  # hours of virtual time pass
            patch(mock.patch.object(os, "urandom", entropy.randbytes))
            patch(mock.patch.object(bridge, "_readers", Readers()))
            patch(mock.patch.object(loop_waker, "_has_counters", False))
            patch(mock.patch.object(control_watch._watchdog, "is_awake", True))
            patch(mock.patch.object(ProcessWatch, "follow", return_value=None))
            patch(mock.patch.object(traces, "tracer", return_value=None))  # spans read more from the store
            patch(mock.patch.object(crash, "armed", "simulated"))
            patch(mock.patch.object(crash, "place", stage.passes))
            for module in _PROVERS:
                patch(mock.patch.object(module, "is_proven_dead", stage.is_dead))
            if stage.duties_left_out:
                patch(mock.patch.object(Worker, "_duties", _few_duties(Worker._duties)))
            yield
    finally:
        random.setstate(chance)
        ids._tails[:] = tails
        del in_memory[LEDGER], kept_in_memory[LEDGER]
        logging.disable(disabled)
        for key in [key for key in store._shared if key[0].target.startswith("simulated-")]:
            del store._shared[key]
        if was_collecting:
            gc.enable()


_IDLE_HERE = {"schedules", "triggers", "webhooks", "stalls"}


def _few_duties(duties: Any) -> Any:
    """Most schedules leave out the duties that have nothing to do in them: looking takes most of their time."""
    return lambda worker: [duty for duty in duties(worker) if duty.name not in _IDLE_HERE]
