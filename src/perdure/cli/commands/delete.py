"""Delete a finished task."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Cell, line


@click.command(cls=Verb)
@id_argument()
@click.option("--force", is_flag=True, help="Cancel the task first if it has not finished.")
@click.pass_obj
async def command(call: Invocation, id: str, force: bool) -> None:
    """Delete a finished task. A tombstone stays, as proof that the task existed."""
    task = await call.tasks.handle(id)
    await task.delete(force=force)
    call.answer({"id": id, "uid": task.uid, "deleted": True}, line(Cell(id, "strong"), ": deleted"))
