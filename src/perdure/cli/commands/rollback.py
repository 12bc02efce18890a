"""Make an earlier checkpoint a task's state again."""

from __future__ import annotations

import click

from perdure.cli import words
from perdure.cli.inputs import id_argument
from perdure.cli.invocation import Invocation
from perdure.cli.verbs import Verb


@click.command(cls=Verb)
@id_argument()
@click.argument("checkpoint")
@click.pass_obj
async def command(call: Invocation, id: str, checkpoint: str) -> None:
    """Make an earlier checkpoint, a number or an id, the state again. Later ones stay readable."""
    task = await call.tasks.handle(id)
    await task.rollback(checkpoint)
    record = await task.record()
    call.answer(record, words.task_line(record, f"its state is that of checkpoint {checkpoint}"))
