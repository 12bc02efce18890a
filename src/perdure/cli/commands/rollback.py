"""Make an earlier checkpoint a task's state again."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.argument("checkpoint")
@click.option("--undo", is_flag=True, help="Undo what a durable function has done since.")
@click.option("--keep", is_flag=True, help="Leave what it has done since as it is.")
@click.pass_obj
async def command(call: Invocation, id: str, checkpoint: str, undo: bool, keep: bool) -> None:
    """Make an earlier checkpoint, a number or an id, the state again. Later ones stay readable.

    A durable function goes on from there, with what it had done by then. If it has done effects since, say what
    becomes of them: --undo, in a process that knows them, or --keep.
    """
    if undo and keep:
        raise click.UsageError("--undo and --keep are two answers to one question")
    task = await call.tasks.handle(id)
    await task.rollback(checkpoint, undo=undo if undo or keep else None)
    record = await task.record()
    call.answer(record, words.task_line(record, f"its state is that of checkpoint {checkpoint}"))
