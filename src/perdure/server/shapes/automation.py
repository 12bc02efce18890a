"""Schedules, triggers and events as callers send and see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from perdure._durable import Schedule, definition_version
from perdure._model import Trigger
from perdure.server.http import Caller
from perdure.server.shapes.tasks import Strict

Json = Any


class ScheduleBody(Strict, frozen=True, kw_only=True):
    """A schedule to make: the function, and its times by `cron` with `tz`, or `every` so many seconds."""

    function: str
    version: int | None = None
    arguments: dict[str, Json] = field(default_factory=dict)
    cron: str = ""
    tz: str = "UTC"
    every: float | None = None  # seconds
    missed: Literal["skip", "once", "all"] = "once"
    overlap: bool = False
    queue: str = "default"
    priority: int = 0


class NewSchedule(ScheduleBody, frozen=True, kw_only=True):
    id: str


class Run(Struct, frozen=True):
    """One task that a schedule has started."""

    id: str
    uid: str
    status: str
    created_at: datetime
    finished_at: datetime | None


class ScheduleShown(Struct, frozen=True, kw_only=True):
    """A schedule as it is."""

    id: str
    function: str
    function_version: int
    queue: str
    cron: str
    tz: str
    every: timedelta | None
    missed: str
    overlaps: bool
    is_paused: bool
    next_at: datetime | None
    last_at: datetime | None
    runs: int
    skipped: int
    open: Sequence[str]
    etag: str
    state: Json | UnsetType = UNSET  # what the newest run left to the next; with `data:read`
    next_ticks: Sequence[datetime] | UnsetType = UNSET  # of one schedule: the next five
    last_runs: Sequence[Run] | UnsetType = UNSET  # of one schedule: the last twenty


class CronQuestion(Strict, frozen=True, kw_only=True):
    cron: str
    tz: str = "UTC"
    count: int = 5
    after: datetime | None = None  # None: now


class Ticks(Struct, frozen=True):
    """When a cron expression comes round: each moment in UTC, and as the clock in its zone shows it."""

    items: list[datetime]
    local: list[str]


class Rate(Strict, frozen=True, kw_only=True):
    """At most `most` in `per` seconds; further events wait."""

    most: int
    per: float


class TriggerBody(Strict, frozen=True, kw_only=True):
    """A trigger to make: an event, and the function it starts or the task it signals."""

    event: str
    function: str | None = None
    version: int | None = None
    arguments: dict[str, Json] = field(default_factory=dict)
    takes: str | None = None  # the parameter that gets the data
    queue: str = "default"
    priority: int = 0
    task: str | None = None  # `order-{number}`: {number} stands for a field of the data
    signal: str | None = None
    rate: Rate | None = None
    schema: dict[str, Json] | None = None


class NewTrigger(TriggerBody, frozen=True, kw_only=True):
    id: str


class TriggerShown(Struct, frozen=True, kw_only=True):
    """A trigger as it is."""

    id: str
    source: str
    event: str
    path: str
    pattern: str
    host: str
    function: str
    version: int
    takes: str
    queue: str
    priority: int
    task: str
    signal: str
    schema: Mapping[str, Json] | None
    rate: Rate | None
    is_paused: bool
    etag: str


class NewEvent(Strict, frozen=True, kw_only=True):
    """`id` is the sender's: an event that is sent again is known by it."""

    id: str | None = None
    data: Json = None


def schedule_for(caller: Caller, found: Schedule, **more: Any) -> ScheduleShown:
    names = [name for name in ScheduleShown.__struct_fields__ if hasattr(found, name) and name != "state"]
    return ScheduleShown(
        **{name: getattr(found, name) for name in names},
        etag=f"v{found.version}",
        state=found.state if caller.reads_data else UNSET,
        **more,
    )


def trigger_shown(id: str, found: Trigger) -> TriggerShown:
    names = [name for name in TriggerShown.__struct_fields__ if name in Trigger.__struct_fields__]
    rate = Rate(most=found.most, per=found.per_ms / 1000) if found.most else None
    return TriggerShown(
        id=id, **{name: getattr(found, name) for name in names}, rate=rate, etag=f"v{definition_version(found)}"
    )
