"""The situation of a task as the server tells it, with a link for each possible action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from msgspec import Struct, structs

from perdure._durable import TaskCall
from perdure._model import Cause, HeldBy, LastError, SituationKind, TaskSummary
from perdure.server.http import Caller, Scope
from perdure.server.table import Method, routes
from perdure.types import Situation, Wait, Way


class ShortSituation(Struct, frozen=True, kw_only=True):
    """Why a task is, or is not, running, in one line."""

    kind: SituationKind
    say: str  # 160 characters at most
    since: datetime | None  # when it began to be so
    until: datetime | None  # when it changes by itself
    you: int  # questions that wait for a person


class ListedTask(TaskSummary, frozen=True, kw_only=True):
    """A task as a list shows it, with why it is, or is not, running."""

    situation: ShortSituation


class WayOn(Struct, frozen=True, kw_only=True):
    """Something a caller can do about a situation: one request, or a command where no request does it."""

    verb: str
    label: str  # what a button says
    method: str  # "" where no route does it
    href: str
    body: Mapping[str, Any]  # to send, or to begin a form with
    scope: str
    allowed: bool  # whether this caller has the scope
    danger: bool  # it cannot be taken back, or touches the world: ask twice
    cli: str


class TaskSituation(Struct, frozen=True, kw_only=True):
    """Why a task is, or is not, running, and what can be done about it."""

    kind: SituationKind
    cause: Cause  # what exactly it is, within its kind
    say: str
    since: datetime | None
    until: datetime | None
    you: int
    headline: str  # 90 characters at most
    details: Sequence[str]  # the facts that prove it, then what is kept
    next: str  # what happens next, or what ends it
    facts: Mapping[str, Any]
    by_itself: bool  # it changes without a person
    unattended: bool  # it would, but no worker is there to notice
    holder: HeldBy | None
    waits: Sequence[Wait]
    last_error: LastError | None
    ways: Sequence[WayOn]
    call: TaskCall | None  # the durable function it carries out


class _Target(Struct, frozen=True):
    method: Method
    path: str
    scope: Scope


_TARGETS: Mapping[str, _Target] = {
    "resume": _Target("POST", "/v1/tasks/{task}/resume", "tasks:control"),
    "cancel": _Target("POST", "/v1/tasks/{task}/cancel", "tasks:control"),
    "fork": _Target("POST", "/v1/tasks/{task}/fork", "tasks:control"),
    "rollback": _Target("POST", "/v1/tasks/{task}/rollback", "tasks:control"),
    "archive": _Target("POST", "/v1/tasks/{task}/archive", "tasks:control"),
    "pause": _Target("POST", "/v1/tasks/{task}/pause", "tasks:control"),
    "take": _Target("POST", "/v1/tasks/{task}/take", "tasks:control"),
    "signal": _Target("POST", "/v1/tasks/{task}/signal", "tasks:write"),
    "lift": _Target("DELETE", "/v1/switches/{task}", "tasks:control"),
    "lift all": _Target("DELETE", "/v1/switch", "tasks:control"),
    "open": _Target("GET", "/v1/tasks/{task}", "tasks:read"),
    "journal": _Target("GET", "/v1/tasks/{task}/journal", "data:read"),
    "approve": _Target("POST", "/v1/inbox/{pause}/approve", "inbox:decide"),
    "reject": _Target("POST", "/v1/inbox/{pause}/reject", "inbox:decide"),
    "answer": _Target("POST", "/v1/inbox/{pause}/answer", "inbox:decide"),
    "settle": _Target("POST", "/v1/inbox/{pause}/settle", "inbox:decide"),
    "plan": _Target("GET", "/v1/tasks/{task}/plan", "tasks:read"),
    "terminal": _Target("GET", "/v1/tasks/{task}/units", "tasks:read"),
}


def short(situation: Situation) -> ShortSituation:
    return ShortSituation(**{name: getattr(situation, name) for name in ShortSituation.__struct_fields__})


def with_situation(summary: TaskSummary, situation: Situation) -> ListedTask:
    return ListedTask(**structs.asdict(summary), situation=short(situation))


def situation_for(
    caller: Caller,
    address: str,
    situation: Situation,
    pauses: Mapping[str, str] | None = None,
    call: TaskCall | None = None,
) -> TaskSituation:
    """A situation with its ways on as requests. `address` is the task's; `pauses` has the ids of its open questions,
    by their paths."""
    told = {name: getattr(situation, name) for name in TaskSituation.__struct_fields__ if name not in ("ways", "call")}
    if call is not None and not caller.reads_data:
        call = structs.replace(call, text="")
    ways = [way_for(caller, address, way, pauses) for way in situation.ways]
    return TaskSituation(**told, ways=ways, call=call)


def way_for(caller: Caller, address: str, way: Way, pauses: Mapping[str, str] | None = None) -> WayOn:
    told: dict[str, Any] = {name: getattr(way, name) for name in ("verb", "label", "body", "danger", "cli")}
    target = _TARGETS.get("lift all" if way.verb == "lift" and not way.about else way.verb)
    pause = (pauses or {}).get(way.about.removeprefix("|")) or (pauses or {}).get(way.about)
    if target is None or (target.method, target.path) not in _served() or ("{pause}" in target.path and not pause):
        return WayOn(**told, method="", href="", scope="", allowed=False)
    name = _segment(way.about) if way.verb in ("open", "lift") else address.rpartition("/")[2]
    return WayOn(
        **told,
        method=target.method,
        href=target.path.replace("{task}", name).replace("{pause}", pause or ""),
        scope=target.scope,
        allowed=caller.may(target.scope),
    )


@lru_cache(maxsize=1)
def _served() -> frozenset[tuple[str, str]]:
    return frozenset((route.method, route.path) for route in routes())


def _segment(id: str) -> str:
    return quote(id, safe="@:+")
