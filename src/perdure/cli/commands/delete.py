"""Remove a finished task for good."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Cell, line


@click.command(cls=Verb)
@id_argument()
@click.option("--force", is_flag=True, help="Cancel it first if it is still going on.")
@click.pass_obj
async def command(call: Invocation, id: str, force: bool) -> None:
    """Remove a finished task for good; only a note that it existed stays."""
    task = await call.tasks.handle(id)
    await task.delete(force=force)
    call.answer({"id": id, "uid": task.uid, "deleted": True}, line(Cell(id, "strong"), ": deleted"))
