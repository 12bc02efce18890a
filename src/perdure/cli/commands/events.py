"""List what happened to a task, and who did it."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.commands.show import events_table
from perdure.cli.output import follow as following


@click.command(cls=Verb)
@id_argument()
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N events (default: all).")
@click.option("--follow", is_flag=True, help="Keep printing new events until the task ends.")
@click.pass_obj
async def command(call: Invocation, id: str, last: int | None, follow: bool) -> None:
    """List what happened to a task, oldest first, and who did it."""
    if follow:
        await following(call, id, last=last)
        return
    events = await call.tasks.events(id)
    shown = events[-last:] if last is not None else events
    call.answer_items(shown, events_table(shown))
