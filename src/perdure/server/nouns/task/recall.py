"""Tasks: what a model is told about one, its interrupted lines of thought, and what a resume brings back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from perdure._ground.ids import check_id
from perdure._model import Frame, Gone
from perdure._runtime import RestorePlan, RestoreReport, last_report, plan_for
from perdure.errors import InvalidInput
from perdure.memory import ContinuityLayer, DurableTaskState, PlanLayer
from perdure.server.http import Answer, Ask, Caller
from perdure.server.nouns.references import glance_at, no_such, task_of
from perdure.server.shapes.cuts import cut, without
from perdure.server.shapes.tasks import Strict
from perdure.server.table import Nothing, Route

_MOST_TOKENS = 1_000_000
# What of a verdict, a plan and a report is in the words of an agent's commands, files and calls.
_OF_A_VERDICT = ("reason", "same", "differs", "since_you_left", "waiting", "do_not_assume", "options")
_OF_A_PLAN = ("findings", "refusals", "notes", "then", "rerun")


class MemoryQuery(Strict, frozen=True, kw_only=True):
    budget: int = 4000  # tokens


class Told(Struct, frozen=True):
    """The context that a model gets about a task, block by block."""

    items: Sequence[Any]
    notes: list[str]


class Thoughts(Struct, frozen=True):
    """Interrupted lines of thought, the newest first, and the last few that were given up or finished."""

    frames: Sequence[Frame]
    gone: Sequence[Gone]


class Why(Strict, frozen=True, kw_only=True):
    why: str = "dropped over HTTP"


class PlanQuery(Strict, frozen=True, kw_only=True):
    checkpoint: str | None = None


async def memory(ask: Ask[MemoryQuery, None]) -> Answer:
    _, row = await glance_at(ask)
    if not 1 <= ask.query.budget <= _MOST_TOKENS:
        raise InvalidInput(f"budget is {ask.query.budget}; it lies between 1 and {_MOST_TOKENS:,} tokens")
    async with ask.app.memory(row.id, [ContinuityLayer(), DurableTaskState(), PlanLayer()]) as told:
        blocks = list(await told.prompt_blocks(budget=ask.query.budget))
        return Answer(Told(blocks, [f"{note.layer}: {note.what}" for note in told.notes]), is_large=True)


async def frames(ask: Ask[Nothing, None]) -> Answer:
    task, _ = await glance_at(ask)
    return Answer(cut(Thoughts(await task.frames.open(), await task.frames.gone())))


async def drop_frame(ask: Ask[Why, None]) -> Answer:
    task, _ = await glance_at(ask)
    try:
        name = check_id(ask.parts["name"])
    except InvalidInput:
        raise no_such("frame") from None
    await task.frames.drop(name, why=ask.query.why[:500])
    return Answer(None, 204)


async def plan(ask: Ask[PlanQuery, None]) -> Answer:
    found = await plan_for(await task_of(ask), ask.query.checkpoint)
    return Answer(_plan_for(ask.caller, found), is_large=True)


async def report(ask: Ask[Nothing, None]) -> Answer:
    found = await last_report(await task_of(ask))
    if found is None:
        return Answer(None, 204)
    shown: Any = found if ask.caller.reads_data else without(found, "plan", "units", "warnings")
    if not ask.caller.reads_data:
        shown = {**shown, "plan": _plan_for(ask.caller, found.plan)}
    return Answer(shown, is_large=True)


def _plan_for(caller: Caller, found: RestorePlan) -> Any:
    """The plan; for a caller who may not read what agents wrote, only which units come back and how."""
    if caller.reads_data:
        return found
    units = [
        {"name": one.name, "kind": one.kind, "level": one.level, "verdict": without(one.verdict, *_OF_A_VERDICT)}
        for one in found.units
    ]
    return {**without(found, *_OF_A_PLAN), "units": units}


def _route(method: Any, name: str, does: str, handler: Any, scope: Any, **more: Any) -> Route:
    path = f"/v1/tasks/{{task}}/{name}"
    return Route(method=method, path=path, handler=handler, does=does, scopes=(scope,), **more)


ROUTES = (
    _route(
        "GET", "memory", "What a model is told about a task.", memory, "data:read", query=MemoryQuery, answer=Told
    ),
    _route("GET", "frames", "The interrupted lines of thought of a task.", frames, "data:read", answer=Thoughts),
    _route(
        "DELETE",
        "frames/{name}",
        "Give up a line of thought.",
        drop_frame,
        "tasks:control",
        query=Why,
        status=204,
        once="may",
    ),
    _route(
        "GET", "plan", "What a resume would bring back, and how.", plan, "tasks:read", query=PlanQuery,
        answer=RestorePlan,
    ),
    _route(
        "GET", "report", "How the last restore of a task went; nothing if there was none.", report, "tasks:read",
        answer=RestoreReport, statuses=(204,),
    ),
)  # fmt: skip
