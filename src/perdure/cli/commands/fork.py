"""Start a new task from the state or journal of another."""

from __future__ import annotations

from typing import Any

import click

from perdure._tasks import Task
from perdure.cli.base import Invocation, Verb, id_argument, pairs_option, patch_of
from perdure.cli.output import words
from perdure.errors import AlreadyExists


@click.command(cls=Verb)
@id_argument()
@click.argument("new", required=False)
@click.option("--at", metavar="N|STEP", help="Start at this checkpoint, or after this step (default: the newest).")
@pairs_option(
    "--set", "pairs", help="Set an argument, or a key of the state: JSON, else text; repeatable (default: none)."
)
@click.pass_obj
async def command(
    call: Invocation, id: str, new: str | None, at: str | None, pairs: tuple[tuple[str, str], ...]
) -> None:
    """Start task NEW (default: ID-fork, ID-fork-2 …) from the state of task ID. Task ID does not change.

    The fork of a durable function continues after the step that --at names by its number, path or name, as `perdure
    journal` lists them; 0 starts from the beginning. Steps and effects up to there are not repeated.

    \b
    perdure fork report report-fr --at summarise#6 --set language=fr
    """
    task = await call.tasks.handle(id)
    changes = patch_of(pairs)
    made = await (task.fork(new, at=at, set=changes) if new is not None else _free(task, at, changes))
    record = await made.record()
    origin = f"forked from {id}" + (f" at {at}" if at is not None else "")
    call.answer(record, words.task_line(record, origin))


async def _free(task: Task, at: str | None, changes: dict[str, Any]) -> Task:
    """Fork under the first free id."""
    number = 1
    while True:
        try:
            return await task.fork(f"{task.id}-fork" + (f"-{number}" if number > 1 else ""), at=at, set=changes)
        except AlreadyExists:
            number += 1
