"""A simulated process: an app of its own on the store that all of them share.

Code, duties, replay and committer are the real ones. Simulated are the threads (the committer's, the heart's, the
readers'), whose work becomes timers of the process's loop, and death: a dead process's loop makes no pass any more, and
nothing it left behind reaches the store or the world.

Owns what a process does to the store and when that fails. Who dies when is decided in schedule.py.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import Context
from typing import Any
from weakref import WeakValueDictionary

from perdure import Perdure
from perdure._durable.attempt import waiting_parents
from perdure._durable.control import control_watch
from perdure._durable.effects import running_effects
from perdure._durable.lifecycle import task_handle
from perdure._ground.config import Address
from perdure._ground.ids import Process as ProcessId
from perdure._store import exit_flush, store
from perdure._store.bell import Bell
from perdure._store.committer import _DEEP, Committer
from perdure._store.contract import Again
from perdure._store.memory import MemoryEngine
from perdure._store.memory.tables import Lease, Tables
from perdure._store.presence import Presence
from perdure._store.rows import Params, Row
from perdure._store.write import Write
from perdure._worker.delivery import deliveries, webhooks
from perdure.errors import PerdureError, StoreClosed, StoreForked, StoreUnreachable
from tests.simulator.machine import Loop, Machine, Turns
from tests.torture import hostile_programs

# What a process has one of, and the simulated ones each have their own.
_GLOBALS: tuple[tuple[Any, str, Callable[[], Any]], ...] = (
    (waiting_parents, "_waits", dict),
    (running_effects, "_of_loop", WeakValueDictionary),
    (control_watch, "_watches", dict),
    (control_watch, "_newest", lambda: None),
    (task_handle, "_all", dict),
    (deliveries, "_here", dict),
    (webhooks, "_here", dict),
    (hostile_programs, "app_here", list),
)


# Told of each commit: its writes, their rows, and the leases before it.
Watch = Callable[[Sequence[Write], Sequence[Row | None], Mapping[str, Lease]], None]


class Killed(BaseException):
    """Unwinds the code of a process that was killed in the middle of it; nothing it does on its way out counts."""


class Weather:
    """How reads and commits go: how long they take and how often they fail. Calm: shortly, and never."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.is_calm = False
        self.slow = rng.choice((0.0, 0.02, 0.1))  # how many take far longer than the rest
        self.fails = rng.choice((0.0, 0.0, 0.01, 0.04))

    def delay(self) -> float:
        rng = self._rng
        if not self.is_calm and rng.random() < self.slow:
            return rng.uniform(0.0, 0.7)
        return rng.expovariate(2_000.0)

    def trouble(self) -> str:
        """What happens to this commit."""
        if self.is_calm or self._rng.random() >= self.fails:
            return ""
        return self._rng.choice(("before", "before", "again", "after"))

    def fails_to_read(self) -> bool:
        return not self.is_calm and self._rng.random() < self.fails / 2


def _unreachable() -> StoreUnreachable:
    return StoreUnreachable("the simulated store is out of reach")


class Engine(MemoryEngine):
    """The oracle, as one process reaches it."""

    def __init__(self, tables: Tables, process: Process | None, watch: Watch) -> None:
        super().__init__("")
        self._tables, self._process, self._watch = tables, process, watch

    def commit(self, writes: Sequence[Write]) -> list[Row | None]:
        process = self._process
        if process is None:
            return self._commit(writes)
        if not process.is_alive:
            raise StoreClosed
        trouble = process.weather.trouble()
        if trouble == "before":
            raise _unreachable()
        if trouble == "again" and process.agains < 3:
            process.agains += 1
            raise Again("a deadlock")
        process.agains = 0
        rows = self._commit(writes)
        if trouble == "after":
            raise _unreachable()
        return rows

    def _commit(self, writes: Sequence[Write]) -> list[Row | None]:
        before = dict(self._tables.leases)
        rows = super().commit(writes)
        self._watch(writes, rows, before)
        return rows

    def query(self, name: str, params: Params) -> list[Row]:
        if self._process is not None and not self._process.is_alive:
            raise StoreClosed
        return super().query(name, params)


class SimulatedCommitter(Committer):
    """The committer, whose thread is a timer of the process's loop."""

    def __init__(self, engine: Engine, process: Process | None) -> None:
        super().__init__(engine)
        exit_flush.alive.discard(self)
        self._process = process
        self._thread = None if process is None else _NoThread()  # type: ignore[assignment]
        self._sleep = _DEEP  # for good: each write that would wake the thread comes to `_wake`
        self._is_due = False

    def _wake(self) -> None:
        process = self._process
        if process is not None and process.is_alive and not self._is_due:
            self._is_due = True
            process.loop.have_done(process.weather.delay(), self._commit_now)

    def _start(self) -> None:
        pass

    def _commit_now(self) -> None:
        self._is_due = False
        self._commit_some()
        if self._queue:
            self._wake()

    def wait(self, write: Write, *, may_commit: bool = True) -> None:
        while not write.done:
            if self._process is not None and not self._process.is_alive:
                raise StoreClosed
            self._commit_some()

    def close(self) -> None:
        while self._queue:
            self._commit_some()
        self._gone = StoreClosed

    def die(self) -> None:
        self._gone = StoreClosed
        self._queue.clear()


class _NoThread:
    def join(self, timeout: float | None = None) -> None:
        pass


class SimulatedPresence(Presence):
    """The presence, whose heart is a coroutine on the process's loop."""

    process_: Process | None = None
    _heart: asyncio.Task[None] | None = None

    def hold(self) -> None:
        self._held += 1
        if self._heart is None and self.process_ is not None:
            self._heart = Context().run(self.process_.loop.create_task, self._beat_on())

    def _rest(self) -> None:
        if self._heart is not None:
            self._heart.cancel()
            self._heart = None

    async def _beat_on(self) -> None:
        interval = self.lease.total_seconds() / 3
        wait, me = interval, asyncio.current_task()
        while True:
            await asyncio.sleep(wait)
            if self._held <= 0 and self._clock.boottime() - self._idle_since >= self.lease.total_seconds():
                if self._heart is me:
                    self._heart = None
                return
            try:
                self._committer.submit(self._write("beat"))
                wait = interval
            except (StoreClosed, StoreForked):
                return
            except PerdureError:
                wait = interval / 8


class Process(Turns):
    """A process that carries out one coroutine, and is done when that is."""

    def __init__(
        self,
        machine: Machine,
        number: int,
        tables: Tables,
        weather: Weather,
        watch: Watch,
    ) -> None:
        self.machine, self.number, self.weather = machine, number, weather
        self.loop = Loop(machine)
        self.agains = 0
        self.exit: Any = None  # what its coroutine returned
        self._own = [make() for _, _, make in _GLOBALS]
        self._main: asyncio.Task[Any] | None = None
        self.shared = _shared(machine, Engine(tables, self, watch), self, number)
        machine.members.append(self)

    def open(self) -> Perdure:
        return Perdure(f"memory://{self.shared.address.target}")

    def start(self, work: Callable[[Process], Coroutine[Any, Any, Any]]) -> None:
        self._main = Context().run(self.loop.create_task, work(self))

    @property
    def has_ended(self) -> bool:
        return self._main is not None and self._main.done()

    def result(self) -> Any:
        """What its coroutine returned; raises what it raised."""
        assert self._main is not None
        return self._main.result()

    # ── turns ───────────────────────────────────────────────────────────────────────────────────

    def enter(self) -> None:
        """Have this process's globals in place."""
        if now_running != [self]:
            leave_all()
            _put(self._own)
            now_running[:] = [self]

    # ── death ───────────────────────────────────────────────────────────────────────────────────

    def kill(self) -> None:
        """SIGKILL: from now on nothing of it runs, and nothing of it is written."""
        if not self.is_alive:
            return
        self.is_alive = False
        self.machine.note("killed", self.number)
        self.shared.committer.die()
        self.loop.drop_all()
        store._shared.pop((self.shared.address, self.shared.pid), None)


now_running: list[Process] = []  # whose globals are in place, if it is a simulated process's turn
_nobodys: list[Any] = []  # those of the process that simulates, meanwhile


def _put(values: Sequence[Any]) -> None:
    for (module, name, _), value in zip(_GLOBALS, values, strict=True):
        if not now_running and len(_nobodys) < len(_GLOBALS):
            _nobodys.append(getattr(module, name))
        setattr(module, name, value)


def leave_all() -> None:
    """Nobody has a turn: the globals are those of the process that simulates."""
    if now_running:
        now_running[0]._own = [getattr(module, name) for module, name, _ in _GLOBALS]
        now_running.clear()
        for (module, name, _), value in zip(_GLOBALS, _nobodys, strict=True):
            setattr(module, name, value)
        _nobodys.clear()


def _shared(machine: Machine, engine: Engine, process: Process | None, number: int) -> Any:
    """What `share` makes of an address, with simulated parts."""
    import os

    address = Address("memory", f"simulated-{id(machine):x}-{number}")
    shared = store.Shared.__new__(store.Shared)
    shared.address, shared.clock, shared.engine = address, machine.clock, engine
    shared.committer = SimulatedCommitter(engine, process)
    presence = shared.presence = SimulatedPresence(engine, shared.committer, machine.clock)
    presence.process_ = process
    presence.process = ProcessId("simulated", "", "", number, number)
    shared.bell = Bell(engine, shared.committer)
    shared.pid, shared.users = os.getpid(), 0
    store._shared[address, shared.pid] = shared
    return shared


def operator(machine: Machine, tables: Tables, watch: Watch) -> Perdure:
    """An app for those who are not simulated: its calls are done on the spot, and never fail."""
    shared = _shared(machine, Engine(tables, None, watch), None, 0)
    return Perdure(f"memory://{shared.address.target}")


class Readers:
    """Reader threads of all simulated processes: each read is a timer of the loop that asked."""

    def have_done(self, act: Callable[[], Any]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        process = now_running[0]
        future: asyncio.Future[Any] = loop.create_future()

        def read() -> None:
            if future.done():
                return
            if process.weather.fails_to_read():
                future.set_exception(_unreachable())
                return
            try:
                future.set_result(act())
            except Exception as error:
                future.set_exception(error)

        process.loop.have_done(process.weather.delay(), read)
        return future

    def end(self) -> None:
        pass
