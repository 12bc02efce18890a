"""Calls and units as streams show them, with and without `data:read`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType

from perdure._model import Level, Verdict
from perdure.server.http import Caller

if TYPE_CHECKING:
    from perdure._durable import JournalCall
    from perdure._runtime import UnitRecord


class StreamedCall(Struct, frozen=True, kw_only=True):
    """A call of a durable function as it is recorded. Its line and what came of it are data."""

    position: int
    path: str
    name: str
    op: str
    state: str
    at: datetime | None
    took: float  # seconds
    attempt: int
    scope: str
    parent: str | None
    call: str | UnsetType = UNSET
    returned: str | UnsetType = UNSET
    error: Any = UNSET


def calls_for(caller: Caller, calls: Sequence[JournalCall]) -> list[StreamedCall]:
    return [_call_for(caller, call) for call in calls]


def _call_for(caller: Caller, call: JournalCall) -> StreamedCall:
    data: dict[str, Any] = {}
    if caller.reads_data:
        data = {"call": call.call, "returned": call.returned, "error": call.error}
    return StreamedCall(
        position=call.position,
        path=call.path,
        name=call.name,
        op=call.op,
        state=call.state,
        at=call.at,
        took=call.took.total_seconds(),
        attempt=call.attempt,
        scope=call.scope,
        parent=call.parent,
        **data,
    )


class Writer(Struct, frozen=True):
    """Who may type into a unit: a person through a server, or the process of an agent."""

    name: str
    is_person: bool
    until: datetime | None
    you: bool


class Unit(Struct, frozen=True, kw_only=True):
    """One live thing of a task. What it runs and where are data."""

    task: str
    name: str
    kind: str
    uid: str
    pid: int
    alive: bool
    level: Level  # how it came to be as it is: kept, rebuilt, or lost
    status: int | None
    made_at: datetime
    ended_at: datetime | None
    waiting: str | None  # "secret" or "prompt"
    begin: int | None
    end: int | None
    rows: int | None  # of its terminal
    columns: int | None
    writer: Writer | None
    limits: Any
    verdict: Verdict | UnsetType = UNSET  # the level with its reasons
    why: str | UnsetType = UNSET
    running: str | UnsetType | None = UNSET
    argv: Sequence[str] | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    recipe: Any = UNSET  # the rest of what it is made from; secrets are references


def writer_label(caller: Caller) -> str:
    """The identity of this caller for a keeper: its name, and its credential, which no other caller has."""
    name = "".join(one if one.isprintable() else " " for one in caller.name)[:100]
    return f"{name} [{caller.how} {caller.credential[:60]}]"


def writer_of(caller: Caller, label: str, until: datetime | None) -> Writer | None:
    if not label:
        return None
    name, is_person, _ = label.rpartition(" [")
    if not label.endswith("]") or not is_person:
        return Writer(label, False, until, False)
    return Writer(name, True, until, label == writer_label(caller))


def unit_for(caller: Caller, unit: UnitRecord) -> Unit:
    data: dict[str, Any] = {}
    if caller.reads_data:
        data = {
            "verdict": unit.verdict,
            "why": unit.why,
            "running": unit.running,
            "argv": unit.argv,
            "cwd": unit.cwd,
            "recipe": unit.recipe,
        }
    return Unit(
        task=unit.task,
        name=unit.name,
        kind=unit.kind,
        uid=unit.uid,
        pid=unit.pid,
        alive=unit.is_alive,
        level=unit.verdict.level,
        status=unit.status,
        made_at=unit.made_at,
        ended_at=unit.ended_at,
        waiting=unit.waiting,
        begin=unit.begin,
        end=unit.end,
        rows=unit.rows,
        columns=unit.columns,
        writer=writer_of(caller, unit.writer, unit.writer_until),
        limits=unit.limits,
        **data,
    )
