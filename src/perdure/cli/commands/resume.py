"""Resume a paused or failed task."""

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
    from perdure._runtime import RestorePlan
    from perdure._tasks import Task


@click.command(cls=Verb)
@id_argument(required=False)
@click.option(
    "--all", "is_all", is_flag=True, help="Resume every failed task, or the tasks that the filters below choose."
)
@click.option(
    "--status",
    type=click.Choice(["failed", "paused"]),
    help="With --all: tasks with this status (default: failed, or paused with --reason).",
)
@click.option("--reason", type=click.Choice(REASONS), help="With --all: tasks paused for this reason (default: any).")
@click.option("--agent", metavar="NAME", help="With --all: tasks of this agent (default: any).")
@pairs_option("--tag", "tags", help="With --all: tasks with this tag; repeatable (default: any).")
@click.option(
    "--since", type=since, metavar="7d|MOMENT", help="With --all: tasks created since then (default: any time)."
)
@click.option(
    "--error", "error", metavar="TEXT", help="With --all: tasks whose error or pause contains this text (default: any)."
)
@click.option("--dry-run", is_flag=True, help="With --all: list the tasks that would resume, and change nothing.")
@pairs_option("--set", "pairs", help="Set a key of the state: JSON, else text; repeatable (default: none).")
@json_option(
    "--state", type=json_object, help="Set several keys of the state: a JSON object, merged over it (default: none)."
)
@click.option("--checkpoint", metavar="N", help="Continue from checkpoint number N (default: the newest).")
@click.option(
    "--instruction",
    metavar="TEXT",
    help="What a durable function does from now on; finished steps stay finished (default: none).",
)
@click.option("--anyway", is_flag=True, help="Resume even if the environment has changed since the last save.")
@click.option("--plan", "only_plan", is_flag=True, help="Show what would come back and how, and change nothing.")
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
    """Resume a paused or failed task.

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
        from perdure.cli.output import plan_text as plans

        plan = await _plan(call, task, checkpoint)
        call.answer(plan, *plans.blocks(plan))
        return
    await _resume(call, task, patch, checkpoint, instruction, anyway)
    record = await task.record()
    call.answer(record, words.task_line(record))


def _refuse_mixture(id: str | None, is_all: bool, dry_run: bool, filters: dict[str, Any], *, single: bool) -> None:
    """
    Raises:
        UsageError: neither a task nor --all is given, or both are, or an option does not belong to the one given.
    """
    if (id is None) == (not is_all):
        raise click.UsageError("give the id of one task, or --all")
    if id is not None and (dry_run or any(filters.values())):
        raise click.UsageError("the filters and --dry-run need --all; for one task, --plan shows what would happen")
    if id is None and single:
        raise click.UsageError("--checkpoint and --plan need the id of one task")


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
    """Resume each task on its own: a refused task does not stop the others, and is listed with the reason."""
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
    verb = "would resume" if dry_run else "resumed"
    title = f"{done} of {len(told)} tasks {verb}" if told else "no task matches"
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
    """The error or the pause of a task, in one line."""
    if record.status != "failed":
        return words.standing(record)
    kind = record.error.get("type") if isinstance(record.error, Mapping) else None
    return ": ".join(filter(None, (str(kind or ""), words.error_message(record.error))))


async def _resume_one(call: Invocation, id: str, patch: dict[str, Any], instruction: str | None, anyway: bool) -> str:
    """Resume one task; returns why it was refused, or an empty text."""
    try:
        await _resume(call, await call.tasks.handle(id), patch, None, instruction, anyway)
    except PerdureError as refused:
        return refused.what
    return ""


async def _resume(
    call: Invocation, task: Task, patch: dict[str, Any], checkpoint: str | None, instruction: str | None, anyway: bool
) -> None:
    if call.server is not None:
        from perdure.client import resume

        await resume(task, state=patch, checkpoint=checkpoint, instruction=instruction, anyway=anyway)
        return
    if not anyway:
        await _refuse_a_changed_world(task, checkpoint)
    await task.resume(state=patch, checkpoint=checkpoint, instruction=instruction)
    await _start_command(call, task.id)


async def _plan(call: Invocation, task: Task, checkpoint: str | None) -> RestorePlan:
    if call.server is not None:
        from perdure.client import restore_plan

        return await restore_plan(task, checkpoint)
    from perdure._runtime import plan_for

    return await plan_for(task, checkpoint)


async def _start_command(call: Invocation, id: str) -> None:
    """Start the command of `perdure run` again if it has ended; one that still runs continues by itself."""
    from perdure._runtime import command_runs as running
    from perdure._runtime import keeper_control as keeping

    if keeping.has_home(call.store):
        await running.begin_again(await call.app.runtime(id))


async def _refuse_a_changed_world(task: Task, checkpoint: str | None) -> None:
    """Check the saved fingerprints that this process can check.

    Raises:
        Incompatible: the environment has changed since the last save.
    """
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
