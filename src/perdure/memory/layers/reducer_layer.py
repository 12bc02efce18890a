"""A state folded from its events: `reduce(state, event)` gives the next state, and the effects to carry out.

The log is the truth. An event is on disk when `send` returns, at its own position in the log, also when several
processes send at once. The state is computed from the log. Effects are returned to the sender of the event. Procedures
are stored this way. Agents use `perdure.automation.Reducer`, whose effects are carried out by a durable function.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from perdure.errors import Conflict, InvalidInput
from perdure.memory.layer import Block, Budget, LayerContext, Scope, Slot
from perdure.memory.prompt import clean, cut

S = TypeVar("S")
_PAGE = 100
_TRIES = 200


class Sent(NamedTuple, Generic[S]):
    """The result of an event: its number from 1, the state after it, and the effects it asks for."""

    number: int
    state: S
    effects: Sequence[Any]


class ReducedState(Generic[S]):
    """A layer: events of a task, and the state computed from them. `reduce` is pure: it reads nothing else."""

    scope: Scope = "execution"

    def __init__(self, reduce: Callable[[S, Any], tuple[S, Sequence[Any]]], initial: S, *, id: str = "reduced") -> None:
        self.id: str = id
        self._reduce, self._initial = reduce, initial
        self.slot: int = Slot.WORKING_MEMORY + 20
        self.budget: Budget = Budget(0, 400)
        self._context: LayerContext | None = None
        self._events: list[Any] = []
        self._state = initial
        self._version = 0  # of the last page
        self._turn = asyncio.Lock()

    @property
    def state(self) -> S:
        return self._state

    @property
    def events(self) -> Sequence[Any]:
        return tuple(self._events)

    async def init(self, context: LayerContext) -> None:
        self._context = context
        await self._load()

    async def recall(self, budget: int) -> Block | None:
        assert self._context is not None
        if not self._events:
            return None
        text = json.dumps(clean(self._state), ensure_ascii=False, default=str).replace("<", "\\u003c")
        short = cut(f"<{self.id}>\n{text}\n</{self.id}>", budget, self._context.count)
        return None if short is None else Block("developer", short)

    async def send(self, event: Any) -> Sent[S]:
        """Add an event to the log; on disk when this returns.

        Raises:
            NotStorable: the event cannot be stored; the log was not changed.
        """
        if self._context is None:
            raise InvalidInput("this layer is not in use", do="async with app.memory(task_id, [layer]):")
        async with self._turn:
            for _ in range(_TRIES):
                number, page = len(self._events), len(self._events) // _PAGE
                listed = [*self._events[page * _PAGE :], event]
                state, effects = self._reduce(self._state, event)
                seen = self._version if number % _PAGE else 0
                version = await self._context.storage.swap(f"log/{page:08d}", listed, seen)
                if version is not None:
                    self._events.append(event)
                    self._state, self._version = state, version or 1
                    return Sent(number + 1, state, effects)
                await self._load()  # another process wrote first; its events come first
        raise Conflict(f"gave up adding to the log {self.id!r}: other processes kept adding events")

    def at(self, number: int) -> S:
        """The state after the first `number` events."""
        return self._fold(self._events[:number])

    def _fold(self, events: Sequence[Any]) -> S:
        state = self._initial
        for event in events:
            state, _ = self._reduce(state, event)
        return state

    async def _load(self) -> None:
        assert self._context is not None
        events: list[Any] = []
        page = 0
        while (loaded := await self._context.storage.load(f"log/{page:08d}")) is not None:
            events += loaded.value
            self._version, page = loaded.version or 1, page + 1
        self._events, self._state = events, self._fold(events)
