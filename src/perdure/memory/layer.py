"""A layer of a model's memory: its place, its owner, its budget, and its hooks.

A layer is any object with an id, a slot and a scope. Its hooks are all optional, blocking or async:

    init(context)            load the stored values; called again until it succeeds, before any other hook
    recall(budget)           the text for the model, in at most `budget` tokens: text, Block, several, or None
    store(turn)              a turn is over: store what changed
    on_spawn(child_task_id)  the layer of a child, or None when the child has none
    on_return(child)         a child has ended: take over its layer's values
    on_complete(outcome)     the task has ended: success, failure or aborted
    dispose()                the last call, whatever happened

Inside a durable function the hooks are called again in a replay, and their context answers (`storage`, `now`, `once`)
from the journal. A `recall` that asked for nothing is not called again.

Owns these terms. runner.py calls the hooks, in order and with limits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args, runtime_checkable

from perdure._durable import LayerRecord
from perdure._ground.durations import Duration, require_timedelta
from perdure.errors import InvalidInput

if TYPE_CHECKING:
    from perdure._tasks import Tasks
    from perdure.memory.storage import ScopedStorage

T = TypeVar("T")
Scope = Literal["execution", "thread", "resource", "global"]
Outcome = Literal["success", "failure", "aborted"]
SCOPES: tuple[str, ...] = get_args(Scope)
OUTCOMES: tuple[str, ...] = get_args(Outcome)
MOST_ID = 100


class Slot(IntEnum):
    """Where a layer's block stands in the prompt: lower numbers first. Any int will do."""

    CONTINUITY = 50
    WORKING_MEMORY = 100
    PLAN = 150
    THREAD = 200
    RESOURCE = 300
    GLOBAL = 400


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of the prompt."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Budget:
    """The fewest tokens a layer needs and the most it may have; with `max` None it takes all that are left."""

    min: int = 0
    max: int | None = None

    def __post_init__(self) -> None:
        if self.min < 0 or (self.max is not None and self.max < self.min):
            raise InvalidInput(f"a budget of {self.min} to {self.max} tokens cannot be kept")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long each hook may take; after that it is cancelled, noted, and the turn continues."""

    init: timedelta = timedelta(seconds=10)
    recall: timedelta = timedelta(seconds=10)
    store: timedelta = timedelta(seconds=30)
    spawn: timedelta = timedelta(seconds=10)
    complete: timedelta = timedelta(seconds=30)

    if TYPE_CHECKING:  # they can be given as text

        def __init__(
            self,
            init: Duration = ...,
            recall: Duration = ...,
            store: Duration = ...,
            spawn: Duration = ...,
            complete: Duration = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("init", "recall", "store", "spawn", "complete"):
            object.__setattr__(self, name, require_timedelta(name, getattr(self, name), is_positive=True))


@dataclass(frozen=True, slots=True)
class Turn:
    """One cycle of the agent, as passed to `store`."""

    depth: int
    timestamp: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerContext:
    """The services a layer can use; given to `init`."""

    task_id: str
    storage: ScopedStorage  # values of its own scope only
    tasks: Tasks
    now: Callable[[], datetime]
    count: Callable[[str], int]
    base_dir: Path | None = None  # of the first layer that has one
    note: Callable[[str], None] = field(default=lambda text: None)
    record: LayerRecord = field(default_factory=lambda: LayerRecord("layer"))
    begin: Callable[[], Awaitable[Any]] | None = None  # loads the layers that must be loaded

    async def once(self, what: str, read: Callable[[], Awaitable[T]], as_type: Any = Any) -> T:
        """The result of `read`, for data outside a layer's storage: a file, another service.

        Inside a durable function it is recorded, and a replay returns the recorded value without reading. `what` names
        it; `as_type` is its type, unless it is plain data.
        """
        return await self.record.answer(what, read, as_type)


@runtime_checkable
class Layer(Protocol):
    """The attributes that every layer has; `budget`, `timeouts`, `owner` and the hooks are optional."""

    id: str
    slot: int
    scope: Scope


def check(layer: Any) -> None:
    """Refuse an object that is not a layer before it is used.

    Raises:
        InvalidInput: it has no id, slot or scope, or an impossible one.
    """
    name = type(layer).__name__
    layer_id, slot, scope = (getattr(layer, word, None) for word in ("id", "slot", "scope"))
    if not isinstance(layer_id, str) or not 0 < len(layer_id) <= MOST_ID or not layer_id.isprintable():
        raise InvalidInput(f"the layer {name} needs an id of 1 to {MOST_ID} readable characters, not {layer_id!r}")
    if isinstance(slot, bool) or not isinstance(slot, int):
        raise InvalidInput(f"the layer {layer_id!r} needs a whole number as its slot, not {slot!r}")
    if scope not in SCOPES:
        raise InvalidInput(f"the layer {layer_id!r} has the scope {scope!r}", do=f"one of {', '.join(SCOPES)}")
    budget_of(layer)
    timeouts_of(layer)


def budget_of(layer: Any) -> Budget:
    """The layer's budget; without one, or with "auto", it takes all tokens that are left."""
    given = getattr(layer, "budget", None)
    if isinstance(given, Budget):
        return given
    if given is None or given == "auto":
        return Budget()
    if isinstance(given, Mapping) and set(given) <= {"min", "max"}:
        return Budget(given.get("min", 0), given.get("max"))
    raise InvalidInput(f"the layer {layer.id!r} has the budget {given!r}", do='Budget(min, max), or "auto"')


def timeouts_of(layer: Any) -> Timeouts:
    given = getattr(layer, "timeouts", None)
    if given is None:
        return Timeouts()
    if isinstance(given, Timeouts):
        return given
    raise InvalidInput(f"the layer {layer.id!r} has the time-outs {given!r}", do='write Timeouts(store="30s")')
