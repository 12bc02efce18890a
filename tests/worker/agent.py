"""A user's module, for `perdure worker`."""

from __future__ import annotations

import gc
from pathlib import Path

from perdure import Perdure, durable, step
from tests.support.waiting import look_again

app = Perdure()
not_an_app = 3


@step(flush=True)
async def mark(path: str, what: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{what}\n")


@step
async def wait_for(path: str) -> None:
    while not Path(path).exists():
        await look_again()


@durable
async def greet(name: str) -> str:
    return f"hello {name}"


@durable
async def break_down(name: str) -> str:
    raise LookupError(f"nobody is called {name},\nor has ever been")


@durable
async def left_alone() -> bool:
    """True if this module is none of what the garbage collector looks through."""
    return gc.get_freeze_count() > 1000 and not any(found is app for found in gc.get_objects())


@durable
async def patient(path: str, gate: str) -> None:
    await mark(path, "began")
    await wait_for(gate)
    await mark(path, "ended")
