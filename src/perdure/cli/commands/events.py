"""List what happened to a task, in order, and who did it."""

from __future__ import annotations

import click

from perdure.cli.commands.show import events_table
from perdure.cli.inputs import id_argument
from perdure.cli.invocation import Invocation
from perdure.cli.verbs import Verb


@click.command(cls=Verb)
@id_argument()
@click.option("--last", type=click.IntRange(1), help="Only the last so many.")
@click.pass_obj
async def command(call: Invocation, id: str, last: int | None) -> None:
    """List what happened to a task, in order, and who did it."""
    events = await call.tasks.events(id)
    shown = events[-last:] if last is not None else events
    call.answer_items(shown, events_table(shown))
