"""Which tasks to list, and what a list shows of them.

Owns the filter, its checks, and the records of pages, counts and changes. perdure/_tasks/lists reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec import Struct, field
from msgspec.structs import force_setattr

from perdure._model.tasks.task import FINISHED, STATUSES, Progress, Status
from perdure._model.waits import REASONS, Pause, Reason
from perdure.errors import InvalidInput

Sort = Literal["newest", "changed", "due"]
SORTS: tuple[Sort, ...] = get_args(Sort)
Part = Literal["pause", "children"]
PARTS: tuple[Part, ...] = get_args(Part)
_TEXTS = ("function", "queue", "agent", "text", "parent", "schedule")
_MOMENTS = ("since", "until", "changed_since")


class TaskFilter(Struct, frozen=True, kw_only=True):
    """Which tasks are wanted: all that fit every field that is given. An empty field lets every task through.

    status, reason, situation   any of these; one may be given as a plain text
    function, version, queue    of the durable function that a task carries out
    tags                        all of these
    text                        the id or the name has it, in capital or small letters
    parent                      the id of the task that started it
    schedule                    the id of the schedule that started it
    since, until                created at or after, and before
    changed_since               changed at or after
    archived                    archived tasks too
    hidden                      hidden tasks too: those that are a part of another
    """

    status: frozenset[Status] = frozenset()
    reason: frozenset[Reason] = frozenset()
    situation: frozenset[str] = frozenset()
    function: str | None = None
    version: int | None = None
    queue: str | None = None
    agent: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    parent: str | None = None
    schedule: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    changed_since: datetime | None = None
    archived: bool = False
    hidden: bool = False

    if TYPE_CHECKING:  # one of a set can be given by itself, and several as a list

        def __init__(
            self,
            *,
            status: Status | Collection[Status] = frozenset(),
            reason: Reason | Collection[Reason] = frozenset(),
            situation: str | Collection[str] = frozenset(),
            function: str | None = None,
            version: int | None = None,
            queue: str | None = None,
            agent: str | None = None,
            tags: Mapping[str, str] = {},
            text: str | None = None,
            parent: str | None = None,
            schedule: str | None = None,
            since: datetime | None = None,
            until: datetime | None = None,
            changed_since: datetime | None = None,
            archived: bool = False,
            hidden: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        _take_set(self, "status", STATUSES)
        _take_set(self, "reason", REASONS)
        _take_set(self, "situation", None)
        for name in _TEXTS:
            if not isinstance(getattr(self, name), str | None):
                raise InvalidInput(f"{name} is {type(getattr(self, name)).__name__}, not str")
        if self.version is not None and type(self.version) is not int:
            raise InvalidInput(f"version is {type(self.version).__name__}, not int")
        tags: Any = self.tags
        if not isinstance(tags, Mapping) or not all(type(one) is str for pair in tags.items() for one in pair):
            raise InvalidInput("tags is a mapping of str to str")
        for name in _MOMENTS:
            found = getattr(self, name)
            if found is not None and (not isinstance(found, datetime) or found.tzinfo is None):
                raise InvalidInput(f"{name} is a moment with a time zone", do="give datetime.now(UTC), say")

    @property
    def is_empty(self) -> bool:
        """True if it matches every task that is neither archived nor hidden."""
        return self == TaskFilter()


def _take_set(filter_: TaskFilter, name: str, allowed: Collection[str] | None) -> None:
    given: Any = getattr(filter_, name)
    if isinstance(given, str) or not isinstance(given, Collection):
        given = [given]
    for one in given:
        if not isinstance(one, str) or (allowed is not None and one not in allowed):
            choose = f"choose from {', '.join(allowed)}" if allowed is not None else "give texts"
            raise InvalidInput(f"{one!r} is not a {name}", do=choose)
    force_setattr(filter_, name, frozenset(given))


class Children(Struct, frozen=True):
    """How many tasks a task has started, and how many of them have not ended."""

    total: int
    open: int


class TaskSummary(Struct, frozen=True, kw_only=True):
    """A task as a list shows it: its row, without state, checkpoints, result and error."""

    id: str
    uid: str
    status: Status
    reason: Reason | None  # why it is paused
    function: str | None  # of a durable function, as are the next two
    version: int | None
    queue: str | None
    agent: str
    name: str
    tags: Mapping[str, str]
    progress: Progress | None
    attempts: int
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    finished_at: datetime | None
    archived_at: datetime | None
    due_at: datetime | None  # when it is looked at next, while it is paused
    etag: str  # another one after each move of the task
    hidden: bool = False  # a part of another task
    pause: Pause | None = None  # if asked for
    children: Children | None = None  # if asked for
    unreadable: str = ""  # why something of it is left out

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

    @property
    def is_paused(self) -> bool:
        return self.status == "paused"


class Relative(Struct, frozen=True, kw_only=True):
    """A task beside another. One that does not exist yet has only its id."""

    id: str
    uid: str | None = None
    status: Status | None = None
    name: str = ""
    agent: str = ""
    created_at: datetime | None = None
    finished_at: datetime | None = None


class Family(Struct, frozen=True, kw_only=True):
    """The tasks around a task."""

    parents: Sequence[Relative]  # the nearest first
    children: Sequence[Relative]  # the newest first
    children_total: int
    children_open: int
    dependencies: Sequence[Relative]


class Counts(Struct, frozen=True, kw_only=True):
    """How many tasks there are of each status, and paused for each reason."""

    total: int
    status: Mapping[Status, int]
    reason: Mapping[Reason, int]
    approximate: bool = False  # only the newest tasks were counted

    @classmethod
    def of(cls, rows: Sequence[tuple[str, str | None, int]], *, approximate: bool = False) -> Counts:
        """From how many tasks have each status and reason."""
        by_status: dict[Any, int] = dict.fromkeys(STATUSES, 0)
        by_reason: dict[Any, int] = dict.fromkeys(REASONS, 0)
        for status, reason, count in rows:
            by_status[status] = by_status.get(status, 0) + count
            if reason is not None and status == "paused":
                by_reason[reason] = by_reason.get(reason, 0) + count
        total = sum(by_status.values())
        return cls(total=total, status=by_status, reason=by_reason, approximate=approximate)


class Facets(Struct, frozen=True, kw_only=True):
    """The values tasks can be filtered by, each with the number of tasks; most frequent first."""

    functions: Mapping[str, int]
    agents: Mapping[str, int]
    tags: Mapping[str, int]  # the keys
    queues: Mapping[str, int]
    approximate: bool = False  # only the newest tasks were looked at, or the rarest values left out


class Changes(Struct, frozen=True, kw_only=True):
    """The changes since a watermark, in order, and the watermark for the next call."""

    items: Sequence[TaskSummary]
    gone: Sequence[str]  # uids of tasks that were deleted
    watermark: str
    more: bool  # there was not room for all
