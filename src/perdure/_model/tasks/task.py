"""A task, and which moves its status allows.

Owns the table of lawful moves. The store repeats each row's `before` inside its SQL, so two callers
cannot both make a move that only one may make; this table gives the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from perdure._ground.durations import Duration, require_timedelta
from perdure._model.records import Checkpoint
from perdure._model.tasks.dependency import POLICIES, Policy
from perdure._model.waits import Pause
from perdure.errors import InvalidInput, InvalidTransition

T = TypeVar("T")
Json = Any
Status = Literal["pending", "running", "paused", "completed", "failed", "cancelled"]
FirstStatus = Literal["pending", "running"]  # the statuses a task can begin with
STATUSES: tuple[Status, ...] = get_args(Status)
FINISHED: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})


class Move(Struct, frozen=True):
    before: frozenset[Status]
    after: Status
    hint: str


_HAS_ENDED = "leave it: the task has ended"
_RESUME = "resume a task that is paused or failed; `perdure where` shows what this one is doing"
# One row per verb. `failed` can be resumed (a new attempt); completed and cancelled are final.
MOVES: Mapping[str, Move] = {
    "begin": Move(frozenset({"pending"}), "running", "leave it: the task has begun"),
    "pause": Move(frozenset({"pending", "running"}), "paused", "pause a task that is pending or running"),
    "remind": Move(frozenset({"paused"}), "paused", "send reminders for paused tasks only"),
    "resume": Move(frozenset({"paused", "failed"}), "running", _RESUME),
    "complete": Move(frozenset({"running"}), "completed", "resume the task first if it is paused or failed"),
    "fail": Move(frozenset({"pending", "running", "paused"}), "failed", _HAS_ENDED),
    "leave": Move(frozenset({"pending", "running", "paused", "failed"}), "cancelled", _HAS_ENDED),
    "cancel": Move(frozenset({"pending", "running", "paused", "failed"}), "cancelled", _HAS_ENDED),
}
# A checkpoint changes no status. A holder whose task was paused from outside can still store its last one.
MAY_WRITE: frozenset[Status] = frozenset({"running", "paused"})


def refuse_move(task_id: str, status: str, verb: str) -> InvalidTransition:
    move = MOVES.get(verb)
    hint = move.hint if move else "start it anew with open(again=True), or fork it"
    return InvalidTransition(task_id, status, f"be changed by {verb}", do=hint)


OnFailure = Literal["retry", "pause", "fail"]


class Config(Struct, frozen=True, kw_only=True):
    """The settings of a task, stored with it."""

    checkpoint_interval: timedelta | None = None
    max_retries: int = 3
    timeout: timedelta | None = None
    on_failure: OnFailure | None = (
        None  # after an exception; a durable function then fails, any other task can be retried
    )
    keep_last: int | None = None
    keep_for: timedelta | None = None
    dependency_policy: Policy = "wait"  # when a task it depends on has failed or was cancelled

    if TYPE_CHECKING:  # lengths of time can be given as text

        def __init__(
            self,
            *,
            checkpoint_interval: Duration | None = None,
            max_retries: int = 3,
            timeout: Duration | None = None,
            on_failure: OnFailure | None = None,
            keep_last: int | None = None,
            keep_for: Duration | None = None,
            dependency_policy: Policy = "wait",
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.max_retries < 0:
            raise InvalidInput(f"max_retries is {self.max_retries}; it counts further tries, so 0 or more")
        if self.on_failure is not None and self.on_failure not in get_args(OnFailure):
            raise InvalidInput(f"on_failure is {self.on_failure!r}", do="choose retry, pause or fail")
        if self.dependency_policy not in POLICIES:
            raise InvalidInput(f"dependency_policy is {self.dependency_policy!r}", do="choose wait, fail or skip")
        if self.keep_last is not None and self.keep_last < 1:
            raise InvalidInput("keep_last is at least 1: the newest checkpoint is never removed")
        for name in ("checkpoint_interval", "timeout", "keep_for"):
            force_setattr(self, name, require_timedelta(name, getattr(self, name), is_positive=True))


_MOST_OPERATIONS = 100  # of one task; the one marked longest ago is dropped


class Progress(Struct, frozen=True, kw_only=True):
    """The progress of an operation: the last one marked, with the others of its task beside it."""

    operation: str
    percent: float | None = None
    cursor: Json = None
    done: int | None = None
    total: int | None = None
    at: datetime
    others: Sequence[Progress] = ()  # the task's other operations, as each was marked last, the newest first

    @property
    def remaining(self) -> int | None:
        return None if self.done is None or self.total is None else max(self.total - self.done, 0)

    def of(self, operation: str) -> Progress | None:
        """The last marked progress of this operation; None if it was never marked."""
        return next((one for one in (self, *self.others) if one.operation == operation), None)

    def beside(self, before: Progress | None) -> Progress:
        """The same, with the other operations that were known before."""
        known = () if before is None else (before, *before.others)
        others = [replace(one, others=()) for one in known if one.operation != self.operation]
        return replace(self, others=tuple(others[:_MOST_OPERATIONS]))


def progress_of(operation: str, percent: float | None, done: int | None, total: int | None) -> float | None:
    """The percentage, given or worked out; refuses numbers that cannot be."""
    if not operation:
        raise InvalidInput("progress needs the name of an operation")
    if percent is not None and not 0 <= percent <= 100:
        raise InvalidInput(f"percent is {percent}; it lies between 0 and 100")
    if (done is not None and done < 0) or (total is not None and total < 0):
        raise InvalidInput(f"done={done} and total={total} count things, so neither is below 0")
    if done is not None and total is not None and done > total:
        raise InvalidInput(f"done is {done} of a total of {total}")
    if percent is None and done is not None and total:
        return round(100 * done / total, 2)
    return percent


class Attempt(Struct, frozen=True, kw_only=True):
    """One process's go at a task."""

    number: int  # index of the attempt within its task, from 1
    epoch: int  # of its lease; a rollback raises it too
    host: str
    pid: int
    user: str
    agent: str
    started_at: datetime
    ended_at: datetime | None
    ended: str  # "" while it lives; then released, paused, completed, failed, error: …, taken over, …


class TaskRecord(Struct, frozen=True, kw_only=True):
    """A task as it stood when it was read."""

    id: str
    uid: str
    status: Status
    state: Json
    latest: Checkpoint | None
    pause: Pause | None
    error: Json
    result: Json
    progress: Progress | None
    attempts: Sequence[Attempt]
    version: int
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    name: str = ""
    description: str = ""
    agent: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    config: Config = field(default_factory=Config)
    depends_on: Sequence[str] = ()
    archived_at: datetime | None = None
    hidden: bool = False  # a part of another task, which lists leave out
    damaged: Sequence[str] = ()  # what could not be read: checkpoints (the newest good one was used), pause, progress
    unreadable: str = ""  # in a list: why the state and the like are left out

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

    @property
    def is_paused(self) -> bool:
        return self.status == "paused"


class Page(Struct, Generic[T], frozen=True):
    """Some of a list, and where the rest begins."""

    items: Sequence[T]
    cursor: str | None
    approximate: bool = False  # only some of the tasks were looked at; the rest begin at the cursor

    def __iter__(self) -> Any:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
