"""Agents as reducers: `(state, event) → state, effects`. The log of events is the truth.

    def review(state: Ticket, event: Event) -> tuple[Ticket, list[Do]]:
        if event.kind == "opened":
            return replace(state, text=event.text), [Do(notify, event.by)]
        return replace(state, is_closed=True), []

    tickets = Reducer("ticket", review, Ticket(), Event, is_over=lambda state: state.is_closed)

    await app.start("ticket-7", tickets.function)
    await tickets.send(app, "ticket-7", Event("opened", …))
    await tickets.state_at(app, "ticket-7", 12)       # computed again from the first twelve events

A reducer decides and touches nothing: the same events give the same state in any process, at any time. It returns the
calls of steps and effects that it wants made. The runner makes them in order, before it takes the next event, and the
result of a call can become an event itself. A reducer is a durable function: each event is one recorded signal, an
effect is never repeated, and after each event the state is a checkpoint, so that nothing before it is replayed.

Owns the runner and the fold. The user defines the events and when the machine is over.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from perdure._durable.declare import DurableFunction, durable, is_another, step
from perdure._durable.journal import read_entries
from perdure._durable.pauses import signal_waits
from perdure._durable.progress import checkpoints
from perdure._ground.encoding import codec
from perdure._model import name_of
from perdure._tasks import Tasks, current_row, store_of
from perdure.errors import Conflict, InvalidInput

S = TypeVar("S")
E = TypeVar("E")

_SIGNAL = "event"


class Do:
    """A call that a reducer wants made: a step or an effect, with its arguments.

    `then(result)` can turn the result into an event, which is taken before the events that were sent.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...]
    then: Callable[[Any], Any] | None

    def __init__(self, call: Callable[..., Any], *args: Any, then: Callable[[Any], Any] | None = None) -> None:
        self.call, self.args, self.then = call, args, then

    def __repr__(self) -> str:
        return f"Do({getattr(self.call, '__name__', self.call)}, {', '.join(map(repr, self.args))})"


class _App(Protocol):
    tasks: Tasks


class Reducer(Generic[S, E]):
    """A state machine that outlives its process. Each task of its `function` is one instance."""

    name: str
    reduce: Callable[[S, E], tuple[S, Sequence[Do]]]
    is_over: Callable[[S], bool]

    def __init__(
        self,
        name: str,
        reduce: Callable[[S, E], tuple[S, Sequence[Do]]],
        first: S,
        event: type[E],
        *,
        is_over: Callable[[S], bool] = lambda _: False,
    ) -> None:
        self.name, self.reduce, self.first, self.event, self.is_over = name, reduce, first, event, is_over
        refuse_another(name, reduce)
        self.function: DurableFunction[[], S] = _function_of(self)
        """For `app.start` and `app.run`; takes no arguments. Its result is the last state."""

    async def send(self, app: _App, task_id: str, event: E) -> None:
        """Add an event to the log; it is on disk when this returns.

        Raises:
            InvalidInput: not an event of this reducer; it is not in the log.
            InvalidTransition: the task has ended.
        """
        task = await app.tasks.handle(task_id)
        plain = codec.decode(codec.encode(event, self.event))
        try:
            codec.decode(codec.encode(plain), self.event)  # as the task will read it
        except InvalidInput as problem:
            raise InvalidInput(
                f"{event!r} is not an event of the reducer {self.name!r}: {problem.what}",
                kept="the log as it is",
                do=f"send a {getattr(self.event, '__name__', self.event)}",
            ) from None
        await task.signal(_SIGNAL, plain)

    async def events(self, app: _App, task_id: str) -> Sequence[E]:
        """The events taken so far, in order."""
        task = await app.tasks.handle(task_id)
        row = await current_row(store_of(app.tasks), task_id, task.uid)
        found = await read_entries(store_of(app.tasks), task.uid, row.line)
        taken = [entry.value for _, entry in found if name_of(entry.path) in _NAMES and entry.kind == "result"]
        return [codec.decode(value, self.event) for value in taken if value is not None]

    def fold(self, events: Iterable[E], state: S | None = None) -> S:
        """The state after these events. Makes no calls. Pure."""
        now = self._copy(self.first if state is None else state)
        for event in events:
            now = self.step(now, event)[0]
        return now

    async def state_at(self, app: _App, task_id: str, number: int) -> S:
        """The state after the first `number` events, computed from the log.

        Raises:
            InvalidInput: fewer events were taken so far.
        """
        events = await self.events(app, task_id)
        if not 0 <= number <= len(events):
            raise InvalidInput(f"task {task_id!r} has taken {len(events)} events, not {number}")
        return self.fold(events[:number])

    def step(self, state: S, event: E) -> tuple[S, Sequence[Do]]:
        """Apply one event. Returns the new state and the calls to make."""
        made: Any = self.reduce(state, event)
        if inspect.isawaitable(made) or not isinstance(made, tuple) or len(made) != 2:
            raise InvalidInput(
                f"the reducer {self.name} returned a {type(made).__name__}, not a state and a list of calls",
                kept="the state before this event",
                do="return (state, [Do(…), …]) from a plain function",
            )
        return self._copy(made[0]), made[1]

    def _copy(self, state: S) -> S:
        copy: S = codec.round_trip(state, type(self.first))[1]
        return copy


# The names of events in the journal: those that were sent, and those that calls resulted in.
_OWN = "recorded event"
_NAMES = (f"signal {_SIGNAL}", _OWN)


_reduces: dict[str, Callable[..., Any]] = {}


def refuse_another(name: str, reduce: Callable[..., Any]) -> None:
    """Refuse a second reducer of this name. All share one runner, so their `reduce` functions are compared."""
    before = _reduces.setdefault(name, reduce)
    if is_another(before, reduce):
        raise Conflict(f"two reducers are called {name!r}", do="give one of them another name")
    _reduces[name] = reduce


def _function_of(reducer: Reducer[S, E]) -> DurableFunction[[], S]:
    async def take(event: Any) -> Any:
        return event

    take.__annotations__ = {"event": reducer.event, "return": reducer.event}
    take_own = step(name=_OWN)(take)

    async def run() -> S:
        state = await checkpoints.last(reducer.first)
        own: list[Any] = []  # events made from results; the state is saved when none is left
        while not reducer.is_over(state):
            event = await take_own(own.pop(0)) if own else await signal_waits.next(_SIGNAL, reducer.event)
            state, wanted = reducer.step(state, event)
            for one in wanted:
                result = one.call(*one.args)
                if inspect.isawaitable(result):
                    result = await result
                if one.then is not None:
                    own.append(one.then(result))
            if not own:
                await checkpoints.save(state)
        return state

    run.__qualname__ = reducer.name
    run.__annotations__ = {"return": type(reducer.first)}
    made: DurableFunction[[], S] = durable(name=reducer.name)(run)
    return made
