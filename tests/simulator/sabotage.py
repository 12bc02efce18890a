"""Rules of perdure, each switched off for a while: schedules that are sound have to turn red then.

    with switched_off("the fence"):
        schedule.run(seed)           # some seed raises AssertionError

A rule whose absence no schedule notices is a rule that the simulator does not guard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from perdure._durable.attempt import delivery_order
from perdure._replay import cursor
from perdure._store.memory.engine import VERBS
from perdure._store.memory.tables import Tables
from perdure._worker.waits import timers
from tests.simulator.schedule import Stage


def _any_epoch(self: Tables, uid: str, epoch: int, worker: str) -> bool:
    return uid in self.leases


def _at_once(self: delivery_order.Gate, position: int) -> asyncio.Future[None]:
    future: asyncio.Future[None] = self._loop.create_future()
    future.set_result(None)
    return future


def _is_dead(self: Stage, process: object, *, same_machine: bool) -> bool:
    return True


async def _take_nothing(*_: object) -> bool:
    return False


def _lose(tables: Tables, params: Any) -> Any:
    """Answer as if the signal had been kept."""
    return (1,)


def _fresh(path: str, *_: object) -> cursor.Fresh:
    return cursor.Fresh(path)


RULES: dict[str, Callable[[], Any]] = {
    "the fence": lambda: mock.patch.object(Tables, "may_write", _any_epoch),
    "the intent": lambda: mock.patch.object(cursor, "Uncertain", _fresh),
    "the proof of death": lambda: mock.patch.object(Stage, "is_dead", _is_dead),
    "the order of results": lambda: mock.patch.object(delivery_order.Gate, "come", _at_once),
    "timers": lambda: mock.patch.object(timers, "take_question", _take_nothing),
    "signals": lambda: mock.patch.dict(VERBS, send_signal=_lose),
}


@contextmanager
def switched_off(rule: str) -> Iterator[None]:
    with RULES[rule]():
        yield
