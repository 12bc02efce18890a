"""What the tests of restoring share: a process that remembers nothing, and a runtime opened twice."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from perdure import Perdure
from perdure._runtime.context import context as contexts
from perdure._runtime.context.unit_types import Place, UnitType
from perdure._runtime.restore.continuity import Continuity

KEY = "test-key:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="


async def runtime_of(app: Perdure, id: str = "migrate") -> Continuity:
    task = await app.tasks.open(id, state={"phase": 1})
    return Continuity(app._store, task.id, task.uid)


async def again(app: Perdure, id: str = "migrate") -> Continuity:
    """As a fresh process finds it."""
    contexts.forget_contexts()
    task = await app.tasks.handle(id)
    return Continuity(app._store, task.id, task.uid)


def open_files() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return found


class Made:
    """A unit that leaves a trace in the world: a file, a variable, a listening socket."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace


class MadeType(UnitType):
    kind = "made"
    fails = False

    async def capture(self, live: Made, place: Place) -> Any:
        return {"trace": str(live.trace)}

    async def restore(self, recipe: Any, place: Place) -> Made:
        if MadeType.fails and recipe["trace"].endswith("4"):
            raise OSError("the fourth does not come back")
        made = Made(Path(recipe["trace"]))
        made.trace.write_text("made")
        place.context.env[made.trace.name] = "set"
        return made

    async def rollback(self, live: Made, place: Place) -> None:
        live.trace.unlink()
        place.context.env.pop(live.trace.name)
