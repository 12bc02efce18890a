"""Pin a checkpoint, so that gc never removes it."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Cell, line


@click.command(cls=Verb)
@id_argument()
@click.argument("checkpoint")
@click.option("--off", is_flag=True, help="Unpin the checkpoint.")
@click.pass_obj
async def command(call: Invocation, id: str, checkpoint: str, off: bool) -> None:
    """Pin a CHECKPOINT (a number or an id), so that gc never removes it."""
    task = await call.tasks.handle(id)
    await task.pin(checkpoint, pinned=not off)
    said = f": checkpoint {checkpoint} is {'no longer ' if off else ''}pinned"
    call.answer({"id": id, "checkpoint": checkpoint, "pinned": not off}, line(Cell(id, "strong"), said))
