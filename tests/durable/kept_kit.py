"""What the tests of streams, progress, models and budgets share: a store for real processes, and a world they mark.

A child is told how to die by a file in its folder, not by an argument: the same call has to be made again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from perdure._ground import crash_points as crash
from tests.support.processes import ChildDied, Link, Nursery, die
from tests.torture.kills import Home

Run = Callable[[Home, Path], Coroutine[Any, Any, Any]]


class World:
    """A folder outside of the store: what was really done, one line each, and when to die."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def note(self, line: object, name: str = "log") -> None:
        with (self.folder / name).open("a") as file:
            file.write(f"{line}\n")

    def notes(self, name: str = "log") -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def die_at(self, what: object) -> None:
        (self.folder / "die").write_text(str(what))

    def may_die(self, what: object) -> None:
        path = self.folder / "die"
        if path.exists() and path.read_text() == str(what):
            path.unlink()
            die()


async def carry_on(_: Link, run: Run, home: Home, folder: Path, place: str, count: int) -> Any:
    """In a child: do `run`, and die at a crash place if one is named."""
    if place:
        crash.arm(place, count)
    return await run(home, folder)


def kill(children: Nursery, run: Run, home: Home, folder: Path, *, at: str = "", count: int = 1) -> None:
    """Have a process do `run`, and see it killed: at a place, or where the world says."""
    child = children.start(carry_on, run, home, folder, at, count)
    try:
        heard = child.heard()
    except ChildDied:
        return
    raise AssertionError(f"it was to die, and ended with {heard!r}")


def go_on(children: Nursery, run: Run, home: Home, folder: Path) -> Any:
    """Have another process do the same `run`, to its end."""
    return children.run(carry_on, run, home, folder, "", 1)


def fresh_home(request: Any, engine: str, folder: Path) -> Home:
    """An empty store."""
    if engine == "postgres":
        return Home(str(request.getfixturevalue("database")), f"n{os.urandom(6).hex()}")
    if engine == "memory":
        return Home(f"memory://kept-{os.urandom(6).hex()}")
    return Home(f"sqlite://{folder}/p.db")
