"""List every task that ever had an id, newest first."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Cell, Table, words
from perdure.errors import NotFound


@click.command(cls=Verb)
@id_argument()
@click.pass_obj
async def command(call: Invocation, id: str) -> None:
    """List every task that ever had an id, newest first. `perdure open --again` starts a new task under an old id."""
    found = await call.tasks.history(id)
    if not found:
        raise NotFound("task", id, call.place)
    rows = [
        (
            Cell(one.uid, "strong"),
            Cell(one.status, one.status),
            words.clock_time(one.created_at),
            words.clock_time(one.finished_at),
            words.short(words.standing(one)),
        )
        for one in found
    ]
    call.answer_items(found, Table(("uid", "status", "created", "finished", ""), rows))
