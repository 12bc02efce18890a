"""Take in a task that `perdure export` wrote to a file."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb
from perdure.cli.output import blocks as drawing


@click.command(cls=Verb)
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--map", "pairs", multiple=True, metavar="OLD=NEW", help="Where a folder is here; may be repeated.")
@click.option("--unsigned", is_flag=True, help="Take a bundle that is not signed, though this store has a key.")
@click.option("--trust", is_flag=True, help="Let what nobody signed start and change things: you know who made it.")
@click.pass_obj
async def command(call: Invocation, file: str, pairs: tuple[str, ...], unsigned: bool, trust: bool) -> None:
    """Take in a task that `perdure export` wrote to a file.

    \b
    perdure import deploy.perdure --map /srv/app=/home/ada/app
    """
    from perdure._runtime import bring_in

    paths = dict(_pair(pair) for pair in pairs)
    came = await bring_in(call.tasks, file, paths=paths, unsigned=unsigned, trust=trust)
    call.answer(came, drawing.line(f"task {came.task_id!r} came in from {came.host}"))
    for note in came.notes:
        call.note(f"note: {note}")
    if came.is_copy:
        call.note("note: it is a copy, and paused: it may still be going on where it came from")


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not OLD=NEW", param_hint="--map")
    return old, new
