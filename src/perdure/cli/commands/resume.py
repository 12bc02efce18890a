"""Let a paused or failed task go on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from perdure._model import REASONS, TaskRecord
from perdure.cli.base import Invocation, Verb, id_argument, json_object, json_option, pairs_option, patch_of, since
from perdure.cli.output import Cell, Table, line, words
from perdure.errors import Incompatible, PerdureError

if TYPE_CHECKING:
    from perdure._tasks import Task


@click.command(cls=Verb)
@id_argument(required=False)
@click.option("--all", "is_all", is_flag=True, help="Every failed task, or those that the filters below choose.")
@click.option("--status", type=click.Choice(["failed", "paused"]), help="With --all: these (default: failed).")
@click.option("--reason", type=click.Choice(REASONS), help="With --all: those paused for this reason.")
@click.option("--agent", help="With --all: those of this agent.")
@pairs_option("--tag", "tags", help="With --all: those with this tag; may be repeated.")
@click.option("--since", type=since, metavar="7d|MOMENT", help="With --all: those made since then.")
@click.option("--error", "error", metavar="TEXT", help="With --all: those whose error or pause contains this text.")
@click.option("--dry-run", is_flag=True, help="With --all: tell which tasks would go on, and change nothing.")
@pairs_option("--set", "pairs", help="A key of the state to set: JSON, else text; may be repeated.")
@json_option("--state", type=json_object, help="Several keys at once, as an object merged over the state.")
@click.option("--checkpoint", metavar="N", help="Go on from this checkpoint instead of the last.")
@click.option("--instruction", help="What a durable function is to do from now on; what it has done stays done.")
@click.option("--anyway", is_flag=True, help="Go on although the world is not as it was at the last save.")
@click.option("--plan", "only_plan", is_flag=True, help="Tell what would come back and how, and change nothing.")
@click.pass_obj
async def command(
    call: Invocation,
    /,
    id: str | None,
    is_all: bool,
    dry_run: bool,
    pairs: tuple[tuple[str, str], ...],
    state: dict[str, Any] | None,
    checkpoint: str | None,
    instruction: str | None,
    anyway: bool,
    only_plan: bool,
    **filters: Any,
) -> None:
    """Let a paused or failed task go on.

    \b
    perdure resume deploy --set approved=true --set by=ada
    perdure resume report --instruction "in French, from chapter 7 on"
    perdure resume --plan deploy
    perdure resume --all --error ConnectionError --dry-run
    """
    patch = {**(state or {}), **patch_of(pairs)}
    _refuse_mixture(id, is_all, dry_run, filters, single=checkpoint is not None or only_plan)
    if id is None:
        await _resume_all(call, patch, instruction, anyway, dry_run, **filters)
        return
    task = await call.tasks.handle(id)
    if only_plan:
        from perdure._runtime import plan_for
        from perdure.cli.output import plan_text as plans

        plan = await plan_for(task, checkpoint)
        call.answer(plan, *plans.blocks(plan))
        return
    if not anyway:
        await _refuse_a_changed_world(task, checkpoint)
    await task.resume(state=patch, checkpoint=checkpoint, instruction=instruction)
    await _start_command(call, id)
    record = await task.record()
    call.answer(record, words.task_line(record))


def _refuse_mixture(id: str | None, is_all: bool, dry_run: bool, filters: dict[str, Any], *, single: bool) -> None:
    """
    Raises:
        UsageError: neither a task nor --all is named, or both are, or an option that goes with the other one.
    """
    if (id is None) == (not is_all):
        raise click.UsageError("name one task, or say --all")
    if id is not None and (dry_run or any(filters.values())):
        raise click.UsageError("the filters and --dry-run go with --all; of one task, --plan tells what would happen")
    if id is None and single:
        raise click.UsageError("--checkpoint and --plan go with one task")


async def _resume_all(
    call: Invocation,
    patch: dict[str, Any],
    instruction: str | None,
    anyway: bool,
    dry_run: bool,
    *,
    status: str | None,
    reason: str | None,
    tags: tuple[tuple[str, str], ...],
    since: timedelta | datetime | None,
    error: str | None,
    agent: str | None,
) -> None:
    """Each on its own: one that is refused keeps none of the others from going on, and is told with its reason."""
    made_since = call.now - since if isinstance(since, timedelta) else since
    wanted: Any = status or ("paused" if reason else "failed")
    found = [
        record
        async for record in _every(call, status=wanted, reason=reason, agent=agent, tags=dict(tags), since=made_since)
        if error is None or error.lower() in _said(record).lower()
    ]
    told: list[dict[str, Any]] = []
    for record in found:
        refused = "" if dry_run else await _resume_one(call, record.id, patch, instruction, anyway)
        told.append({"id": record.id, "status": record.status, "error": _said(record), "refused": refused})
    rows = [(Cell(one["id"], "strong"), one["status"], words.short(one["error"]), one["refused"]) for one in told]
    done = sum(not one["refused"] for one in told)
    verb = "would go on" if dry_run else "went on"
    title = f"{done} of {len(told)} tasks {verb}" if told else "no task fits"
    table = Table(("task", "was", "because of", "refused"), rows, title=title)
    call.answer({"items": told, "resumed": 0 if dry_run else done}, table if told else line(title))
    if done < len(told):
        raise click.exceptions.Exit(4)


async def _every(call: Invocation, /, **filters: Any) -> AsyncIterator[TaskRecord]:
    cursor = None
    while True:
        page = await call.tasks.list(**filters, limit=500, cursor=cursor)
        for record in page.items:
            yield record
        cursor = page.cursor
        if cursor is None:
            return


def _said(record: TaskRecord) -> str:
    """What it failed with, or waits for, in one line."""
    if record.status != "failed":
        return words.standing(record)
    kind = record.error.get("type") if isinstance(record.error, Mapping) else None
    return ": ".join(filter(None, (str(kind or ""), words.error_message(record.error))))


async def _resume_one(call: Invocation, id: str, patch: dict[str, Any], instruction: str | None, anyway: bool) -> str:
    """Let it go on; why it could not, if so."""
    try:
        task = await call.tasks.handle(id)
        if not anyway:
            await _refuse_a_changed_world(task, None)
        await task.resume(state=patch, checkpoint=None, instruction=instruction)
        await _start_command(call, id)
    except PerdureError as refused:
        return refused.what
    return ""


async def _start_command(call: Invocation, id: str) -> None:
    """What `perdure run` held for the task goes on by itself, or, if it has ended, is begun anew."""
    from perdure._runtime import command_runs as running
    from perdure._runtime import keeper_control as keeping

    if keeping.has_home(call.store):
        await running.begin_again(await call.app.runtime(id))


async def _refuse_a_changed_world(task: Task, checkpoint: str | None) -> None:
    """What was to be checked before going on, as far as this process can look at it."""
    if checkpoint is not None or not await _has_saved(task):
        return
    from perdure._runtime import plan_for

    plan = await plan_for(task)
    changed = [(found.name, found.why) for found in plan.refusals if found.looked]
    if changed:
        raise Incompatible(plan.checkpoint, changed)


async def _has_saved(task: Task) -> bool:
    from perdure._tasks import carried

    return await carried(task, "runtime", cause="save") is not None
