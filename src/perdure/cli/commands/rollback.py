"""Return a task to an earlier checkpoint."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.argument("checkpoint")
@click.option("--undo", is_flag=True, help="Undo the effects of a durable function since then.")
@click.option("--keep", is_flag=True, help="Keep the effects of a durable function since then.")
@click.pass_obj
async def command(call: Invocation, id: str, checkpoint: str, undo: bool, keep: bool) -> None:
    """Return a task to an earlier CHECKPOINT (a number or an id). Later checkpoints stay readable.

    A durable function continues from there, with the journal it had at that time. If it has done effects since then,
    choose one: --undo, in a process that knows the effects' undo functions, or --keep.
    """
    if undo and keep:
        raise click.UsageError("give either --undo or --keep, not both")
    task = await call.tasks.handle(id)
    await task.rollback(checkpoint, undo=undo if undo or keep else None)
    record = await task.record()
    call.answer(record, words.task_line(record, f"back at checkpoint {checkpoint}"))
