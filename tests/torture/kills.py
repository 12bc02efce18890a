"""Kill a process in the middle of a lifecycle call: afterwards the store has the whole call, or nothing of it.

A seed chooses the call, the way it is made (blocking, or on an event loop) and the moment of death: a
line of Python somewhere in it, or one of SQLite's own operations on its files, which may be cut in half.
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from collections.abc import Callable, Coroutine
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import apsw

from perdure import Perdure
from perdure._ground import crash_points as crash
from perdure._ground.bridge import drive
from perdure._store.sqlite import SqliteEngine
from tests.support.folders import fast_folder
from tests.support.processes import ChildDied, Link, die, nursery, say
from tests.torture.checks import check_rows, dump
from tests.torture.verbs import VERBS, carry_on

Dump = dict[str, Any]


class Home(NamedTuple):
    """Where a store is, and the namespace that is ours in it."""

    url: str
    namespace: str = "default"

    @property
    def kind(self) -> str:
        return self.url.partition(":")[0]

    def open(self) -> Perdure:
        return Perdure(self.url, namespace=self.namespace)


class Death(NamedTuple):
    """When to die: at the `nth` passing of a crash place, line of Python, or operation on a file."""

    kind: str  # "place", "line" or "file"
    nth: int = 1
    place: str = ""


RUNNERS: dict[str, Callable[[Coroutine[Any, Any, Any]], Any]] = {"blocking": drive, "loop": asyncio.run}


def run(seed: int, *, verb: str = "", home: Home | None = None) -> None:
    rng = random.Random(seed)
    # Half of them checkpoints, the call that is made most.
    name = verb or rng.choice([*sorted(VERBS), *["checkpoint"] * len(VERBS)])
    runner = rng.choice(("blocking", "loop"))
    kind = "line" if home else rng.choice(("line", "file"))
    count = rng.randrange(1, how_many(name, runner, kind) + 1)
    with fast_folder() as folder:
        kill_and_check(home or Home(f"sqlite://{folder}/p.db"), name, runner, Death(kind, count))


def kill_and_check(home: Home, verb: str, runner: str, death: Death) -> str:
    """Kill a process during a call and compare what the next process finds; "before" or "after"."""
    after = outcome(verb)
    with nursery() as children:
        child = children.start(act, home, verb, runner, death)
        before = child.heard()
        try:
            child.heard()
            acknowledged = True
        except ChildDied:
            acknowledged = False
        child.kill()
        found = children.run(look, home)
        assert found in (before, after), f"{verb} was written in part: {found}"
        assert not acknowledged or found == after, f"{verb} was acknowledged, and is lost"
        children.run(go_on, home)
    return "after" if found == after else "before"


# ── in the child ─────────────────────────────────────────────────────────────────────────────────


def act(link: Link, home: Home, verb: str, runner: str, death: Death) -> int:
    """Do a call and die in it; or after it, at once, when it was acknowledged."""
    trap = _Trap()
    if death.kind == "line":
        trap.watch_lines()
    with trap.watched_files() if death.kind == "file" else mock.patch.dict({}):
        app = home.open()
    chosen, drive_it = VERBS[verb], RUNNERS[runner]
    task = drive_it(chosen.prepare(app))
    say(link, dump(app))
    if death.kind == "place":
        crash.arm(death.place, death.nth)
    else:
        trap.left = death.nth
    drive_it(chosen.act(app, task))
    passed, trap.left = death.nth - trap.left, sys.maxsize
    say(link, "acknowledged")
    if death.nth < sys.maxsize:
        die()
    return passed


def look(_: Link, home: Home) -> Dump:
    """What a fresh process finds."""
    app = home.open()
    check_rows(app)
    return dump(app)


def go_on(_: Link, home: Home) -> None:
    app = home.open()
    carry_on(app)
    check_rows(app)
    drive(app.close())


class _Trap:
    """Counts down the lines or file operations that may still be done."""

    def __init__(self) -> None:
        self.left = sys.maxsize

    def step(self) -> bool:
        self.left -= 1
        return self.left <= 0

    def watch_lines(self) -> None:
        def trace(*_: Any) -> Any:
            if self.step():
                die()
            return trace

        threading.settrace(trace)
        sys.settrace(trace)

    def watched_files(self) -> Any:
        self._vfs = vfs = _Vfs(self)
        return mock.patch(
            "perdure._store.store.make_engine", lambda address: SqliteEngine(Path(address.target), vfs=vfs.name)
        )


class _Vfs(apsw.VFS):
    name = "deadly"

    def __init__(self, trap: _Trap) -> None:
        self._trap = trap
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return _File(name, flags, self._trap)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        if self._trap.step():
            die()
        super().xDelete(filename, syncdir)


class _File(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], trap: _Trap) -> None:
        super().__init__("", name, flags)
        self._trap = trap

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._trap.step():
            super().xWrite(bytes(data)[: len(data) // 3], offset)  # torn, as by a kill inside write(2)
            die()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        if self._trap.step():
            die()
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:
        if self._trap.step():
            die()
        super().xTruncate(newsize)

    def xLock(self, level: int) -> None:
        if self._trap.step():
            die()
        super().xLock(level)

    def xUnlock(self, level: int) -> None:
        if self._trap.step():
            die()
        super().xUnlock(level)


# ── what to compare with ─────────────────────────────────────────────────────────────────────────


@cache
def outcome(verb: str) -> Dump:
    """The store after an undisturbed call: what the oracle in memory has, so that no engine is its own judge."""
    with nursery() as children:
        found: Dump = children.run(imagine, verb)
    return found


def imagine(_: Link, verb: str) -> Dump:
    app = Perdure(f"memory://{verb}")
    drive(VERBS[verb].act(app, drive(VERBS[verb].prepare(app))))
    return dump(app)


@cache
def how_many(verb: str, runner: str, kind: str) -> int:
    """How many lines, or file operations, an undisturbed call takes."""
    with fast_folder() as folder, nursery() as children:
        child = children.start(act, Home(f"sqlite://{folder}/p.db"), verb, runner, Death(kind, sys.maxsize))
        child.heard()
        child.heard()
        passed: int = child.heard()
        return passed
