"""The first page of a dashboard, in one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, structs

from perdure._model import Cause, Level
from perdure.server.shapes.counts import TaskCounts
from perdure.server.shapes.inbox import Pause
from perdure.server.shapes.situation import ListedTask, WayOn
from perdure.server.shapes.tasks import Strict


class NowQuery(Strict, frozen=True, kw_only=True):
    since: datetime | None = None  # when the caller looked last; 24 hours ago at the earliest, which is the default


class StuckGroup(ListedTask, frozen=True, kw_only=True):
    """Tasks that are stuck for one cause: the newest of them, and how many there are."""

    cause: Cause
    count: int
    ways: Sequence[WayOn]  # of the newest


class UnitChange(Struct, frozen=True):
    """A unit that did not come back as it was."""

    name: str
    level: Level
    why: str


class RestoredTask(ListedTask, frozen=True, kw_only=True):
    """A task that another process has taken over, and how its units came back."""

    restored_at: datetime
    levels: Mapping[str, int]  # how many units came back at each level
    changed: Sequence[UnitChange] | UnsetType = UNSET  # with `data:read`: what is lost first, 10 at most


class WorkersNow(Struct, frozen=True, kw_only=True):
    """Processes that take tasks of durable functions."""

    alive: int
    silent: int  # missed every beat of one lease
    dead: int  # proven dead, and not yet forgotten


class Health(Struct, frozen=True, kw_only=True):
    """Whether something would go on by itself."""

    state: Literal["ok", "unattended"]  # unattended: tasks would go on, and no worker is there
    say: str
    cli: str  # what mends it; "" if nothing has to be mended
    workers: WorkersNow
    unattended: int  # tasks that would go on by themselves if a worker were there


class Now(Struct, frozen=True, kw_only=True):
    """Everything the first page shows. Each list has 10 items at most; `counts` says how many there are."""

    at: datetime  # when this was so
    counts: TaskCounts
    inbox: Sequence[Pause]  # what waits for a person: the soonest to expire first, then the oldest
    stuck: Sequence[StuckGroup]  # one for each cause, the newest first
    working: Sequence[ListedTask]  # also stalled ones; the longest without progress first
    next: Sequence[ListedTask]  # what goes on by itself, the soonest first (`situation.until`)
    recent: Sequence[ListedTask]  # what has ended since, the newest first
    restored: Sequence[RestoredTask]  # what was taken over since, the newest first
    since: datetime  # from when on `recent` and `restored` are
    health: Health


def restored_of(task: ListedTask, at: datetime, told: Mapping[str, Any], *, tells_data: bool) -> RestoredTask:
    """From what the event tells; older ones tell no names."""
    changed = [UnitChange(name, level, why) for name, level, why in told.get("changed", ())] if tells_data else UNSET
    return RestoredTask(**structs.asdict(task), restored_at=at, levels=told.get("levels", {}), changed=changed)


def group_of(task: ListedTask, cause: Cause, count: int, ways: Sequence[WayOn]) -> StuckGroup:
    return StuckGroup(**structs.asdict(task), cause=cause, count=count, ways=ways)


def health_of(workers: WorkersNow, unattended: int, held: int) -> Health:
    """A sentence about the processes: `held` tasks are worked on, `unattended` ones wait for a worker."""
    if workers.alive or not unattended:
        much = f"{workers.alive} worker{'' if workers.alive == 1 else 's'}"
        return Health(state="ok", say=f"{much}, {held} at work", cli="", workers=workers, unattended=unattended)
    say = "No worker is running." if held else "No worker is running, and no process works on a task."
    cli = "perdure worker module:app"
    return Health(state="unattended", say=say, cli=cli, workers=workers, unattended=unattended)
