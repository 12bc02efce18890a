"""What the tests of effects share: a task that is carried on until it ends or waits, and a world that counts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from perdure import Perdure
from perdure._durable.attempt import unwinding
from perdure._ground import crash_points as crash
from perdure._ground.bridge import Nap


class Died(BaseException):
    """Ends an attempt as a kill would, but for the process: nothing of it is written any more."""


unwinding.LEAVING = (*unwinding.LEAVING, Died)


async def until_paused(app: Perdure, id: str, function: Any, *args: Any) -> Any:
    """Carry the task on in this process until it has ended (its result) or waits (its pause)."""
    work = asyncio.ensure_future(app.run(id, function, *args))
    try:
        while not work.done():
            record = await app.tasks.get(id)
            if record is not None and record.status == "paused":
                return record.pause
            await Nap(0.005)
        return work.result()
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await work


async def ended(app: Perdure, id: str, function: Any, *args: Any) -> Any:
    """Its result, or the exception it ended with."""
    try:
        return await app.run(id, function, *args)
    except BaseException as error:
        return error


async def status_of(app: Perdure, id: str) -> str:
    record = await app.tasks.get(id)
    assert record is not None
    return record.status


class Places:
    """Have something done when the code passes a place where a test can have it killed."""

    def __init__(self, monkeypatch: Any) -> None:
        self._acts: dict[str, Callable[[], Any]] = {}
        monkeypatch.setattr(crash, "place", self._passed)
        monkeypatch.setattr(crash, "armed", "by a test")

    def at(self, name: str, act: Callable[[], Any]) -> None:
        """Once, the next time `name` is passed."""
        self._acts[name] = act

    def _passed(self, name: str) -> None:
        act = self._acts.pop(name, None)
        if act is not None:
            act()


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


class World:
    """Something outside that effects change: what was done, under which key."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.keys: list[str] = []
        self.undone: list[str] = []

    def do(self, what: str, key: str) -> str:
        self.done.append(what)
        self.keys.append(key)
        return f"receipt of {what}"


class Naps:
    """How often a module has looked whether the time it waits for has come."""

    def __init__(self, monkeypatch: Any, module: Any) -> None:
        self._begun = 0
        nap = module.Nap

        def counted(seconds: float) -> Any:
            self._begun += 1
            return nap(seconds)

        monkeypatch.setattr(module, "Nap", counted)

    async def waits_on(self, work: asyncio.Future[Any]) -> bool:
        """True if it has looked, and waits on; false when the work has ended instead."""
        enough = self._begun + 2  # the first may have begun before the clock was moved
        await wait_until(lambda: work.done() or self._begun >= enough)
        return not work.done()


async def wait_until(is_so: Callable[[], Awaitable[bool] | bool]) -> None:
    """Wait for something another task of this loop will do."""
    while True:
        found = is_so()
        if found is True or (found is not False and await found):
            return
        await Nap(0.002)
