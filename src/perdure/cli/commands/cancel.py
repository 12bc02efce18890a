"""Cancel a task."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.pass_obj
async def command(call: Invocation, id: str) -> None:
    """Cancel a task. It cannot be resumed, and a process that works on it can no longer write."""
    task = await call.tasks.handle(id)
    await task.cancel()
    record = await task.record()
    call.answer(record, words.task_line(record))
