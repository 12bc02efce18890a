"""Take a task from the process that works on it."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Cell, line, words


@click.command(cls=Verb)
@id_argument()
@click.pass_obj
async def command(call: Invocation, id: str) -> None:
    """Take a task from the process that works on it. That process can no longer write; the events say who took it.

    The task is free afterwards. Continue it from here, or let a worker continue it: the next free worker takes a
    durable function. You can look at a task at any time without taking it: `perdure show --watch`.
    """
    task = await call.tasks.handle(id)
    before = [one for one in (await task.record()).attempts if one.ended_at is None]
    async with task.attempt(take_over=True):
        record = await task.record()
    was = (
        f"taken from {before[0].user} (pid {before[0].pid} on {before[0].host})"
        if before
        else "no process worked on it"
    )
    call.answer(await task.record(), words.task_line(record), line(Cell(was, "faint")))
