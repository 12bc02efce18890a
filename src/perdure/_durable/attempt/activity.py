"""The work an attempt has under way: its scopes, and the steps and effects whose bodies run now.

An attempt is unwound only when none of this runs any more (unwinding.py asks). With more than one scope, results go
out in the order of their positions (delivery_order.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, Protocol

from perdure._durable.attempt.scopes import Scope

Arguments = tuple[Any, tuple[Any, ...], dict[str, Any]]


class EffectUnderWay(Protocol):
    """An effect between its intent and its outcome."""

    path: str
    is_open: bool
    """Whether it may have happened: its body has begun."""

    @property
    def shown(self) -> str:
        """The call with its arguments, for people."""
        ...


class EffectsUnderWay(Protocol):
    """The effects of an attempt. effects/running_effects.py implements this."""

    @property
    def walks(self) -> Collection[EffectUnderWay]:
        """The effects between their intent and their outcome."""
        ...


class Activity:
    """Counts of what runs now, and the calls and scopes behind them."""

    __slots__ = ("alive", "bodies", "effects", "inline", "ordered", "steps", "touched")

    def __init__(self) -> None:
        self.ordered = 1  # scopes, and the timers and threads that can wake one; above one, results go out in order
        self.alive: dict[int, tuple[asyncio.Future[Any], Scope]] = {}  # by the task's id: scopes that are tasks
        self.bodies = 0  # async calls, each from its start until its result reaches the gate
        self.inline = 0  # steps of plain functions, each in a thread of its own
        self.effects: EffectsUnderWay | None = None  # made for the first effect
        self.steps: dict[str, Arguments] = {}  # by path: the Call and its arguments
        # By path: what a call belongs to (a transaction of a kept session). Its entry gets this as its note.
        self.touched: dict[str, dict[str, str | int | float | None]] = {}

    @property
    def has_tasks(self) -> bool:
        """True if a task of the function runs besides its own.

        asyncio reports the end of a task one turn later than `done()` does. A task that is done counts no more.
        """
        return any(not task.done() for task, _ in self.alive.values())

    @property
    def has_effects(self) -> bool:
        """True if an effect is between its intent and its outcome."""
        return self.effects is not None and bool(self.effects.walks)

    @property
    def has_calls(self) -> bool:
        """True if a step is running, or a result has not reached the code yet."""
        return bool(self.bodies or self.inline)

    def has_scope(self, path: str) -> bool:
        """True if the scope of this path has begun and has not ended."""
        return not path or any(scope.path == path for _, scope in self.alive.values())
