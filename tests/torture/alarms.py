"""Signals whose handlers raise, at random moments of blocking calls: the store stays usable, and nothing that was
acknowledged is lost.

A watchdog's alarm is set before each call, to go off somewhere in it or just after it. What its handler raises has to
arrive once, as itself. The call may have been carried out or not; if it returned, it was. Afterwards the same process
and another one use the store, and the chains are whole.

The same over `app.run` in a blocking program, over the first opening of a store, and, with Ctrl-C, over a program whose
event loop runs in the main thread, with a worker in it. There an interrupt ends `asyncio.run`, and the next one goes
on.

python -m tests.torture --part alarms --seeds 0-99   twenty alarms each; even seeds on SQLite, odd ones on PostgreSQL
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from perdure import Perdure as AsyncPerdure
from perdure import durable, effect
from perdure._ground.bridge import drive
from perdure._store.sqlite import fork_gate as gate
from perdure._tasks import examine
from perdure.sync import Perdure
from tests.support import postgres
from tests.support.folders import fast_folder
from tests.support.processes import Link, Nursery, nursery

ALARMS = 20


class Alarm(Exception):
    pass


KINDS: tuple[type[BaseException], ...] = (Alarm, TimeoutError, KeyboardInterrupt)


def run(seed: int) -> None:
    with nursery() as children, contextlib.ExitStack() as opened:
        if seed % 2:
            url = opened.enter_context(postgres.fresh_database())
        else:
            url = f"sqlite://{opened.enter_context(fast_folder())}/p.db"
        check(children, url, seed)


PROGRAMS: tuple[str, ...] = ("disturbed", "disturbed_runs", "disturbed_openings", "disturbed_loop")


def check(children: Nursery, url: str, seed: int, alarms: int = ALARMS, program: str = "") -> None:
    program = program or PROGRAMS[seed // 2 % len(PROGRAMS)]
    begun, acknowledged, went_off = children.run(globals()[program], url, seed, alarms)
    log, problems = children.run(look, url)
    assert not problems, problems
    assert set(acknowledged) <= set(log), f"acknowledged and lost: {set(acknowledged) - set(log)}"
    assert set(log) <= {*begun, "another"}, f"nobody wrote {set(log) - set(begun)}"
    assert len(log) == len(set(log)), f"written twice: {log}"
    assert went_off, "no alarm went off inside a call"


def look(link: Link, url: str) -> tuple[list[str], list[str]]:
    """Another process: it writes and reads, and has the store examined."""
    with Perdure(url) as app:
        app.tasks.open("other", state={"log": []}).append("log", "another")
        found = app.tasks.handle("job").record().state["log"]
        findings = drive(examine(app._inner._store))
        problems = [found.what for found in findings if found.level == "problem"]
        return [*found, *app.tasks.handle("other").record().state["log"]], problems


class Watchdog:
    """A signal's handler that raises, and what became of all it raised."""

    def __init__(self, kind: type[BaseException]) -> None:
        self._kind = kind
        self.raised: list[BaseException] = []
        self.caught: list[BaseException] = []
        # What is raised in a finalizer or in the callback of a weak reference arrives nowhere else.
        sys.unraisablehook = lambda told: self.caught.append(told.exc_value) if told.exc_value in self.raised else None
        signal.signal(signal.SIGALRM, self._bark)

    def _bark(self, number: int, frame: Any) -> None:
        self.raised.append(self._kind(f"alarm {len(self.raised)}"))
        raise self.raised[-1]

    def check(self) -> None:
        """All that was raised has arrived, once."""
        assert self.caught == self.raised, f"raised {self.raised!r}, and {self.caught!r} arrived"

    def call(self, seconds: float, act: Callable[[], object]) -> None:
        """Do it, with an alarm so many seconds from now; raises what it raises but the alarm."""
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                act()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except self._kind as error:
            self.caught.append(error)
            if error not in self.raised:
                raise


def disturbed(link: Link, url: str, seed: int, alarms: int) -> tuple[list[str], list[str], int]:
    rng = random.Random(seed)
    dog = _watchdog(seed)
    begun: list[str] = ["warm", "timed"]
    acknowledged: list[str] = []
    with Perdure(url) as app:
        task = app.tasks.open("job", state={"log": []})
        task.append("log", "warm")
        length = _seconds_of(lambda: task.append("log", "timed"))

        def append(name: str) -> None:
            task.append("log", name)
            acknowledged.append(name)

        acts: list[Callable[[str], object]] = [append, append, append, lambda _: task.record()]
        acts.append(lambda _: app.tasks.events("job"))
        acts.append(lambda name: app.tasks.open(f"task {name}", state={}))
        acts.append(lambda name: task.signal("go", name))
        while len(dog.raised) < alarms:
            name = f"{len(begun)}"
            begun.append(name)
            act = rng.choice(acts)
            dog.call(rng.uniform(0.00001, 1.3 * length), partial(act, name))
        dog.check()
        task.append("log", "last")
        acknowledged.append("last")
        begun.append("last")
        _check_fork(app)
    return begun, acknowledged, len(dog.raised)


# ── durable functions ────────────────────────────────────────────────────────────────────────────


@durable(name="alarms: three notes")
def three_notes(name: str) -> list[str]:
    return [note(f"{name}.{number}") for number in range(3)]


@effect(keyed=True)
def note(what: str) -> str:
    sent.append(what)
    return what


sent: list[str] = []


def disturbed_runs(link: Link, url: str, seed: int, alarms: int) -> tuple[list[str], list[str], int]:
    """`app.run` of a plain durable function: interrupted, it goes on when it is run again, and repeats no effect."""
    rng = random.Random(seed)
    dog = _watchdog(seed)
    names: list[str] = []
    with Perdure(url) as app:
        task = app.tasks.open("job", state={"log": []})
        app.run("warm", three_notes, "warm")
        length = _seconds_of(lambda: app.run("timed", three_notes, "timed"))
        while len(dog.raised) < alarms:
            name = f"run {len(names)}"
            names.append(name)
            dog.call(rng.uniform(0.00001, 1.3 * length), partial(app.run, name, three_notes, name))
        dog.check()
        for name in names:
            assert app.run(name, three_notes, name) == [f"{name}.{number}" for number in range(3)]
            task.append("log", name)
        _check_fork(app)
    return names, names, len(dog.raised)


def disturbed_openings(link: Link, url: str, seed: int, alarms: int) -> tuple[list[str], list[str], int]:
    """A store is opened, used once and closed, again and again. Each time by another task: interrupted before it could
    close, the process holds what it held."""
    rng = random.Random(seed)
    dog = _watchdog(seed)
    begun: list[str] = ["warm", "timed"]
    acknowledged: list[str] = []

    def use(name: str) -> None:
        with Perdure(url) as app:
            app.tasks.open(f"job {name}", state={"log": []}).append("log", name)
            acknowledged.append(name)

    use("warm")
    length = _seconds_of(lambda: use("timed"))
    while len(dog.raised) < alarms:
        name = f"{len(begun)}"
        begun.append(name)
        dog.call(rng.uniform(0.00001, 1.3 * length), partial(use, name))
    dog.check()
    with Perdure(url) as app:
        task = app.tasks.open("job", state={"log": []})
        for name in acknowledged:
            assert app.tasks.handle(f"job {name}").record().state == {"log": [name]}, f"{name} was lost"
            task.append("log", name)
        _check_fork(app)
    return begun, acknowledged, len(dog.raised)


def disturbed_loop(link: Link, url: str, seed: int, alarms: int) -> tuple[list[str], list[str], int]:
    """Ctrl-C in a program whose loop runs in the main thread, with a worker in it."""
    rng = random.Random(seed)
    begun: list[str] = []
    acknowledged: list[str] = []
    interrupts = 0

    async def use(names: Iterator[str]) -> None:
        async with AsyncPerdure(url) as app, app.worker():
            task = await app.tasks.open("job", state={"log": []})
            for name in names:
                begun.append(name)
                await task.append("log", name)
                acknowledged.append(name)
                handle = await app.start(f"started {name}", three_notes_there, name)
                assert await handle.result() == name

    asyncio.run(use(iter(["warm"])))
    length = _seconds_of(lambda: asyncio.run(use(iter(["timed"]))))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored in the background
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    names = map(str, itertools.count(1))
    while interrupts < alarms:
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.00001, 1.3 * length))
                asyncio.run(use(itertools.islice(names, 1)))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupts += 1
    asyncio.run(use(iter(["last"])))
    return begun, acknowledged, interrupts


@durable(name="alarms: a name")
async def three_notes_there(name: str) -> str:
    return name


def _watchdog(seed: int) -> Watchdog:
    return Watchdog(KINDS[seed // 2 % len(KINDS)])


def _check_fork(app: Perdure) -> None:
    """A fork finds no connection in use, and the child may open the store."""
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert time.monotonic() - began < gate.PATIENCE_SECONDS, "a connection that nobody uses counts as used"


def _seconds_of(act: Callable[[], object]) -> float:
    """How long it takes, once everything is warm."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
