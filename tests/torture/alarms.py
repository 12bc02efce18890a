"""Signals whose handlers raise, at random moments of blocking calls: the store stays usable, and nothing that was
acknowledged is lost.

A watchdog's alarm is set before each call, to go off somewhere in it or just after it. What its handler raises has to
arrive once, as itself. The call may have been carried out or not; if it returned, it was. Afterwards the same process
and another one use the store, and the chains are whole.

python -m tests.torture --part alarms --seeds 0-99   twenty alarms each; even seeds on SQLite, odd ones on PostgreSQL
"""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from perdure._ground.hop import drive
from perdure._tasks import examine
from perdure.sync import Perdure, Task
from tests.support import postgres
from tests.support.processes import Link, Nursery, nursery
from tests.torture.powerloss import fast_folder

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


def check(children: Nursery, url: str, seed: int, alarms: int = ALARMS) -> None:
    begun, acknowledged, went_off = children.run(disturbed, url, seed, alarms)
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
        signal.signal(signal.SIGALRM, self._bark)

    def _bark(self, number: int, frame: Any) -> None:
        self.raised.append(self._kind(f"alarm {len(self.raised)}"))
        raise self.raised[-1]

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
    dog = Watchdog(KINDS[seed // 2 % len(KINDS)])
    # A handler that raises in a finalizer or a callback of a weak reference is told there, by the interpreter.
    sys.unraisablehook = lambda told: dog.caught.append(told.exc_value) if told.exc_value in dog.raised else None
    begun: list[str] = ["warm", "timed"]
    acknowledged: list[str] = []
    with Perdure(url) as app:
        task = app.tasks.open("job", state={"log": []})
        length = _seconds_of(task)

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
            dog.call(rng.uniform(0.00001, 1.3 * length), lambda act=act, name=name: act(name))
        assert dog.caught == dog.raised, f"raised {dog.raised!r}, and {dog.caught!r} arrived"
        task.append("log", "last")
        acknowledged.append("last")
        begun.append("last")
    return begun, acknowledged, len(dog.raised)


def _seconds_of(task: Task) -> float:
    task.append("log", "warm")
    began = time.perf_counter()
    task.append("log", "timed")
    return time.perf_counter() - began
