"""The bodies of requests about tasks, and a task as a caller without `data:read` sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType, field, structs

from perdure._model import Attempt, Event, Policy, event_name
from perdure.errors import InvalidInput
from perdure.server.http import Caller
from perdure.types import Config, Reason, Status, TaskRecord

Json = Any
T = TypeVar("T")


class Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body or a query: a field that it does not know is refused."""


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────


class NewConfig(Strict, frozen=True, kw_only=True):
    """The config of a task. Lengths of time are seconds."""

    checkpoint_interval: float | None = None
    max_retries: int = 3
    timeout: float | None = None
    on_failure: Literal["retry", "pause", "fail"] | None = None
    keep_last: int | None = None
    keep_for: float | None = None
    dependency_policy: Policy = "wait"

    def config(self) -> Config:
        """
        Raises:
            InvalidInput: a value will not do.
        """
        given = structs.asdict(self)
        for name in ("checkpoint_interval", "timeout", "keep_for"):
            if given[name] is not None:
                given[name] = seconds(name, given[name])
        return Config(**given)


def seconds(name: str, number: float) -> timedelta:
    """
    Raises:
        InvalidInput: no length of time has so many seconds.
    """
    try:
        return timedelta(seconds=number)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{name} is {number:g} s, which is not a length of time") from None


class NewTask(Strict, frozen=True, kw_only=True):
    """A task to begin: one of an agent of your own, or, with `function`, a durable function for a worker."""

    id: str
    mode: Literal["create", "open", "again"] = "create"
    status: Literal["running", "pending"] = "running"
    state: Json = field(default_factory=dict)
    name: str = ""
    description: str = ""
    agent: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    config: NewConfig | None = None
    depends_on: tuple[str, ...] = ()
    function: str | None = None
    version: int | None = None
    arguments: Json = None
    queue: str | None = None
    priority: int | None = None
    key: str | None = None
    budget: Json = None
    timeout: float | None = None  # seconds


class NewPause(Strict, frozen=True, kw_only=True):
    message: str
    reason: Reason = "human_input"
    payload: dict[str, Json] = field(default_factory=dict)
    now: bool = False
    checkpoint: Json = None


class Resumption(Strict, frozen=True, kw_only=True):
    state: dict[str, Json] | None = None
    checkpoint: str | None = None
    instruction: str | None = None
    anyway: bool = False


class Cancellation(Strict, frozen=True, kw_only=True):
    undo: bool = True
    dry_run: bool = False


class Rollback(Strict, frozen=True, kw_only=True):
    to: str | int
    effects: Literal["undo", "keep"] | None = None
    dry_run: bool = False


class Fork(Strict, frozen=True, kw_only=True):
    id: str | None = None
    at: str | None = None
    set: dict[str, Json] = field(default_factory=dict)
    dry_run: bool = False


class NewSignal(Strict, frozen=True, kw_only=True):
    name: str
    value: Json = None


class Instruction(Strict, frozen=True, kw_only=True):
    text: str


class NewCheckpoint(Strict, frozen=True, kw_only=True):
    state: Json
    base: int | None = None  # number of the checkpoint that the state was made from; None: the newest
    label: str = ""
    plan: Json = None
    memory: Json = None
    partial: Json = None
    pending: tuple[Json, ...] = ()


class NewItem(Strict, frozen=True, kw_only=True):
    path: str | tuple[str | int, ...]
    item: Json
    label: str = ""


class NewProgress(Strict, frozen=True, kw_only=True):
    operation: str
    done: int | None = None
    total: int | None = None
    percent: float | None = None
    cursor: Json = None


class AttemptError(Strict, frozen=True, kw_only=True):
    """The exception that ended an attempt."""

    type: str
    message: str = ""
    traceback: str = ""


class Completion(Strict, frozen=True, kw_only=True):
    result: Json = None


class Failure(Strict, frozen=True, kw_only=True):
    error: Json = None


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


class TaskParts(Strict, frozen=True, kw_only=True):
    """`brief` gives the outer levels of the state only, and of the latest checkpoint nothing that it holds."""

    archived: bool = False
    brief: bool = False


class Waiting(Strict, frozen=True, kw_only=True):
    status: Status = "completed"
    timeout: float = 30.0  # seconds, at most 60


class EventRange(Strict, frozen=True, kw_only=True):
    after: int = 0
    limit: int = 200


class Force(Strict, frozen=True, kw_only=True):
    force: bool = False


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


class Reached(Struct, frozen=True):
    """Whether the task has the status that was waited for, and the task as it is."""

    reached: bool
    task: TaskRecord


class Listed(Struct, Generic[T], frozen=True):
    """A page of a list; `next` is the cursor of the page after it. Routes say what is listed: `Listed[TaskSummary]`."""

    items: Sequence[T]
    as_of: datetime
    next: str | None = None
    approximate: bool = False


class TaskEvent(Struct, frozen=True):
    """One thing that happened to a task, and who did it."""

    number: int
    at: datetime
    kind: str  # its dotted name: `task.paused`
    author: Mapping[str, Json]
    data: Json | UnsetType = UNSET


def seen_by(caller: Caller, record: TaskRecord) -> TaskRecord:
    """The record without what agents wrote, for a caller who may not read it."""
    if caller.reads_data:
        return record
    return structs.replace(
        record,
        state=None,
        latest=None,
        result=None,
        error=_kind_of_error(record.error),
        pause=record.pause and structs.replace(record.pause, message="", payload={}, details={}),
        progress=record.progress and structs.replace(record.progress, cursor=None, others=()),
        attempts=[attempt_for(caller, attempt) for attempt in record.attempts],
    )


def attempt_for(caller: Caller, attempt: Attempt) -> Attempt:
    """The attempt; how it ended without the text of its error, for a caller who may not read that."""
    if caller.reads_data:
        return attempt
    return structs.replace(attempt, ended=attempt.ended.partition(":")[0])


def _kind_of_error(error: Json) -> Json:
    return {"type": str(error["type"])} if isinstance(error, Mapping) and "type" in error else None


def event_for(caller: Caller, event: Event) -> TaskEvent:
    data = event.data if caller.reads_data else UNSET
    return TaskEvent(event.number, event.at, event_name(event.kind), event.author, data)
