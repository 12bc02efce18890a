"""One verb for many tasks: first a dry run, then, with its token, a job.

The token names the tasks that the dry run has seen. Tasks that began since are left alone; if any other task has come
or gone, the set is to be looked at again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, ValidationError, convert, field
from msgspec.structs import replace

from perdure._durable import rehearse_end
from perdure._ground.ids import new_uid
from perdure._model import MOVES, TaskFilter, TaskSummary
from perdure._tasks import Task, store_of, summaries_of
from perdure.errors import InvalidInput, PerdureError
from perdure.server.aside import aside
from perdure.server.desk import Desk
from perdure.server.http import Answer, Ask, HttpProblem
from perdure.server.jobs import Job, Progress
from perdure.server.nouns.task.task_list import Filter, filter_of
from perdure.server.shapes.tasks import Cancellation, Force, NewPause, Resumption, Strict
from perdure.server.table import Nothing, Route

Json = Any
Verb = Literal["pause", "resume", "cancel", "archive", "delete"]
_MOST = 10_000  # tasks at a time
_SHOWN = 100
_REHEARSED = 200  # tasks whose effects a dry run looks at
_TOKEN = 16  # bytes of the signature
_FINISHED = frozenset({"completed", "failed", "cancelled"})
_BEFORE: Mapping[str, frozenset[str]] = {
    "pause": frozenset(MOVES["pause"].before),
    "resume": frozenset(MOVES["resume"].before),
    "cancel": frozenset(MOVES["cancel"].before),
    "archive": _FINISHED,
    "delete": _FINISHED,
}


class Bulk(Strict, frozen=True, kw_only=True):
    """What to do, to which tasks: those that a filter finds, or those with these uids. `with` is the body that the verb
    of one task takes."""

    filter: Filter = Filter()
    uids: tuple[str, ...] = ()
    verb: Verb
    with_: dict[str, Json] = field(name="with", default_factory=dict)
    dry_run: bool = True
    confirm: str | None = None


class Refusal(Struct, frozen=True):
    """A task that the verb leaves alone, and why."""

    id: str
    uid: str
    why: str


class BulkPlan(Struct, frozen=True, kw_only=True):
    """The changes that would happen. Send `confirm` back to carry them out."""

    count: int
    items: Sequence[TaskSummary]  # the first 100
    refused: Sequence[Refusal]  # the first 100
    refused_count: int
    effects_undone: Mapping[str, int]  # by their names; of the first 200 tasks
    effects_uncertain: int
    is_partial: bool  # the effects of some tasks were not looked at
    confirm: str


async def bulk(ask: Ask[Nothing, Bulk]) -> Answer:
    asked = ask.body
    if asked.filter == Filter() and not asked.uids:
        raise InvalidInput("the filter is empty, and so means every task", do="name at least one condition")
    if asked.filter != Filter() and asked.uids:
        raise InvalidInput("a filter and uids are two sets of tasks", do="give one of them")
    how = _how(asked.verb, asked.with_)
    if asked.dry_run:
        return Answer(await aside(lambda: _rehearse(ask, how)), is_large=True)
    if asked.confirm is None:
        raise HttpProblem(
            400, "confirm_required", "a bulk verb is done after its dry run", do="send `confirm` of the dry run"
        )
    upto = await _confirmed(ask, asked.confirm)
    found = [one for one in await aside(lambda: _matching(ask)) if one.uid <= upto[0]]
    if _digest(found) != upto[1]:
        raise HttpProblem(
            409,
            "set_changed",
            "other tasks match now than in the dry run",
            do="confirm a new dry run",
        )
    refused = [Refusal(one.id, one.uid, why) for one in found if (why := _refusal(asked.verb, one, how))]
    barred = {one.uid for one in refused}
    uids = [one.uid for one in found if one.uid not in barred]

    async def work(progress: Progress) -> Json:
        return await _carry_out(ask, uids, refused, how, progress)

    return await ask.server.part(Desk).jobs.begin(ask.caller, "tasks:control", f"bulk {asked.verb}", work)


def _how(verb: Verb, given: Mapping[str, Json]) -> Any:
    """The body of the verb for one task."""
    kinds: dict[str, Any] = {"pause": NewPause, "resume": Resumption, "cancel": Cancellation, "delete": Force}
    kind = kinds.get(verb, Nothing)
    try:
        return convert(dict(given), kind)
    except ValidationError as error:
        raise InvalidInput(f"with: {error}") from None


# ── which tasks ──────────────────────────────────────────────────────────────────────────────────


async def _matching(ask: Ask[Nothing, Bulk]) -> list[TaskSummary]:
    """Every task that is asked for, newest first."""
    if ask.body.uids:
        _see_few(len(ask.body.uids))
        return [*await summaries_of(store_of(ask.app.tasks), ask.body.uids)]
    wanted: TaskFilter = filter_of(ask.body.filter)
    found: list[TaskSummary] = []
    cursor = None
    while True:
        some = await ask.app.tasks.page(wanted, limit=1000, cursor=cursor)
        found += some.items
        _see_few(len(found))
        cursor = some.cursor
        if cursor is None:
            return found


def _see_few(count: int) -> None:
    if count > _MOST:
        raise InvalidInput(f"more than {_MOST:,} tasks match", do="narrow the filter")


def _refusal(verb: Verb, task: TaskSummary, how: Any) -> str:
    if task.status in _BEFORE[verb] or (verb == "delete" and how.force):
        return ""
    return f"it is {task.status}"


# ── the dry run ──────────────────────────────────────────────────────────────────────────────────


async def _rehearse(ask: Ask[Nothing, Bulk], how: Any) -> BulkPlan:
    verb, upto = ask.body.verb, new_uid(ask.server.clock.now_ms())
    found = await _matching(ask)
    refused = [Refusal(one.id, one.uid, why) for one in found if (why := _refusal(verb, one, how))]
    barred = {one.uid for one in refused}
    left = [one for one in found if one.uid not in barred]
    undone: Counter[str] = Counter()
    uncertain = 0
    looked = left[:_REHEARSED] if verb == "cancel" else []
    for one in looked:
        if one.function is None:
            continue
        run = await rehearse_end(await ask.app.tasks.handle_by_uid(one.uid), None, how.undo)
        undone.update(effect.name for effect in run.undone)
        uncertain += len(run.uncertain)
    return BulkPlan(
        count=len(left),
        items=[_bare(one) for one in left[:_SHOWN]],
        refused=refused[:_SHOWN],
        refused_count=len(refused),
        effects_undone=dict(undone),
        effects_uncertain=uncertain,
        is_partial=verb == "cancel" and len(looked) < len(left),
        confirm=await _token(ask, upto, _digest(found)),
    )


def _bare(one: TaskSummary) -> TaskSummary:
    progress = one.progress and replace(one.progress, cursor=None, others=())
    return replace(one, progress=progress)


# ── the token ────────────────────────────────────────────────────────────────────────────────────


def _digest(found: Sequence[TaskSummary]) -> str:
    return hashlib.sha256("\n".join(sorted(one.uid for one in found)).encode()).hexdigest()


async def _token(ask: Ask[Nothing, Bulk], upto: str, digest: str) -> str:
    raw = json.dumps([upto, digest]).encode()
    return urlsafe_b64encode(await _signature(ask, raw) + raw).decode().rstrip("=")


async def _confirmed(ask: Ask[Nothing, Bulk], token: str) -> tuple[str, str]:
    try:
        whole = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        mark, raw = whole[:_TOKEN], whole[_TOKEN:]
        if hmac.compare_digest(mark, await _signature(ask, raw)):
            upto, digest = json.loads(raw)
            return upto, digest
    except ValueError:
        pass
    raise HttpProblem(
        400,
        "bad_confirm",
        "this token does not belong to this filter and verb",
        do="confirm a new dry run",
    )


async def _signature(ask: Ask[Nothing, Bulk], raw: bytes) -> bytes:
    asked, caller = ask.body, ask.caller
    filter = {name: repr(getattr(asked.filter, name)) for name in asked.filter.__struct_fields__}
    bound = json.dumps([caller.namespace, asked.verb, asked.with_, filter, sorted(asked.uids)], sort_keys=True).encode()
    return (await ask.server.part(Desk).vault.sign("bulk", bound + b"\0" + raw))[:_TOKEN]


# ── doing it ─────────────────────────────────────────────────────────────────────────────────────


async def _carry_out(
    ask: Ask[Nothing, Bulk], uids: Sequence[str], barred: Sequence[Refusal], how: Any, progress: Progress
) -> Json:
    """Each task on its own: one that is refused does not stop the others."""
    verb, refused, done = ask.body.verb, [*barred], 0
    progress.total = len(uids)
    for uid in uids:
        if progress.is_to_stop:
            break
        try:
            await _act(await ask.app.tasks.handle_by_uid(uid), verb, how)
            done += 1
        except PerdureError as error:
            refused.append(Refusal(getattr(error, "task_id", ""), uid, type(error).__name__))
        progress.done += 1
        progress.say = f"{done:,} of {len(uids):,}"
    return {"done": done, "refused_count": len(refused), "refused": refused[:_SHOWN]}


async def _act(task: Task, verb: Verb, how: Any) -> None:
    if verb == "pause":
        payload = {**how.payload, **({"now": True} if how.now else {})}
        await task.pause(how.message, reason=how.reason, checkpoint=how.checkpoint, **payload)
    elif verb == "resume":
        await task.resume(state=how.state, checkpoint=how.checkpoint, instruction=how.instruction)
    elif verb == "cancel":
        await task.cancel(undo=how.undo)
    elif verb == "archive":
        await task.archive()
    else:
        await task.delete(force=how.force)


ROUTES = (
    Route(
        method="POST",
        path="/v1/bulk",
        handler=bulk,
        does="Do one verb to all tasks that a filter finds or uids name: first a dry run, then, confirmed, a job.",
        scopes=("tasks:control",),
        body=Bulk,
        answer=Job,
        rehearsal=BulkPlan,
        statuses=(202, 409),
        once="must",
    ),
)
