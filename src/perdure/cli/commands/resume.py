"""Let a paused or failed task go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from perdure.cli import words
from perdure.cli.inputs import id_argument, json_object, json_option, pairs_option, patch_of
from perdure.cli.invocation import Invocation
from perdure.cli.verbs import Verb
from perdure.errors import Incompatible

if TYPE_CHECKING:
    from perdure._tasks import Task


@click.command(cls=Verb)
@id_argument()
@pairs_option("--set", "pairs", help="A key of the state to set: JSON, else text; may be repeated.")
@json_option("--state", type=json_object, help="Several keys at once, as an object merged over the state.")
@click.option("--checkpoint", metavar="N", help="Go on from this checkpoint instead of the last.")
@click.option("--instruction", help="What a durable function is to do from now on; what it has done stays done.")
@click.option("--anyway", is_flag=True, help="Go on although the world is not as it was at the last save.")
@click.option("--plan", "only_plan", is_flag=True, help="Tell what would come back and how, and change nothing.")
@click.pass_obj
async def command(
    call: Invocation,
    id: str,
    pairs: tuple[tuple[str, str], ...],
    state: dict[str, Any] | None,
    checkpoint: str | None,
    instruction: str | None,
    anyway: bool,
    only_plan: bool,
) -> None:
    """Let a paused or failed task go on.

    \b
    perdure resume deploy --set approved=true --set by=ada
    perdure resume report --instruction "in French, from chapter 7 on"
    perdure resume --plan deploy
    """
    task = await call.tasks.handle(id)
    if only_plan:
        from perdure._runtime import plan_for
        from perdure.cli import plans

        plan = await plan_for(task, checkpoint)
        call.answer(plan, *plans.blocks(plan))
        return
    if not anyway:
        await _refuse_a_changed_world(task, checkpoint)
    await task.resume(state={**(state or {}), **patch_of(pairs)}, checkpoint=checkpoint, instruction=instruction)
    await _start_command(call, id)
    record = await task.record()
    call.answer(record, words.task_line(record))


async def _start_command(call: Invocation, id: str) -> None:
    """What `perdure run` held for the task goes on by itself, or, if it has ended, is begun anew."""
    from perdure._runtime import keeping, running

    if keeping.has_home(call.app._store):
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
