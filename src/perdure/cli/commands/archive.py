"""Hide a finished task from `perdure tasks`."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.pass_obj
async def command(call: Invocation, id: str) -> None:
    """Hide a finished task from `perdure tasks`. `perdure tasks --archived` still lists it."""
    task = await call.tasks.handle(id)
    await task.archive()
    record = await task.record()
    call.answer(record, words.task_line(record, "archived"))
