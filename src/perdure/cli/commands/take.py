"""Take a task from whoever works on it, and say so in its history."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Cell, line, words


@click.command(cls=Verb)
@id_argument()
@click.pass_obj
async def command(call: Invocation, id: str) -> None:
    """Take a task from whoever works on it: that attempt can write no more, and the history says who took it.

    The task is free afterwards: go on with it from here, or let a worker do so (of a durable function, the next one
    that looks). Anybody may look at a task at any time, without taking it: `perdure show --watch`.
    """
    task = await call.tasks.handle(id)
    before = [one for one in (await task.record()).attempts if one.ended_at is None]
    async with task.attempt(take_over=True):
        record = await task.record()
    was = f"it was {before[0].user}'s (pid {before[0].pid} on {before[0].host})" if before else "nobody had it"
    call.answer(await task.record(), words.task_line(record), line(Cell(was, "faint")))
