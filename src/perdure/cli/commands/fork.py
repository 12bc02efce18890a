"""Begin a new task with the state of another, or with what a durable function has done so far."""

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
@click.option("--at", metavar="N|STEP", help="Begin at this checkpoint, or after this step, instead of the newest.")
@pairs_option("--set", "pairs", help="An argument, or a key of the state, to set: JSON, else text; may be repeated.")
@click.pass_obj
async def command(
    call: Invocation, id: str, new: str | None, at: str | None, pairs: tuple[tuple[str, str], ...]
) -> None:
    """Begin a task NEW with the state of task ID, which stays as it is; without NEW it is ID-fork, ID-fork-2 and so on.

    Of a durable function the fork goes on after a step, named by its number, its path or its name as `perdure
    journal` lists them; 0 begins anew. Steps and effects up to there stay done and are not repeated.

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
    """The fork, under the first id that nobody has."""
    number = 1
    while True:
        try:
            return await task.fork(f"{task.id}-fork" + (f"-{number}" if number > 1 else ""), at=at, set=changes)
        except AlreadyExists:
            number += 1
