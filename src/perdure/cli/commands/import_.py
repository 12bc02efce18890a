"""Read a task from a file that `perdure export` wrote."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb
from perdure.cli.output import blocks as drawing


@click.command(cls=Verb)
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "--map",
    "pairs",
    multiple=True,
    metavar="OLD=NEW",
    help="Folder OLD of the other machine is NEW here; repeatable (default: the same paths).",
)
@click.option("--unsigned", is_flag=True, help="Accept an unsigned bundle although this store has a key.")
@click.option(
    "--trust",
    is_flag=True,
    help="Allow an unsigned bundle to start programs and change files. Only for a bundle you made yourself.",
)
@click.pass_obj
async def command(call: Invocation, file: str, pairs: tuple[str, ...], unsigned: bool, trust: bool) -> None:
    """Read a task from a file that `perdure export` wrote.

    \b
    perdure import deploy.perdure --map /srv/app=/home/ada/app
    """
    from perdure._runtime import bring_in

    paths = dict(_pair(pair) for pair in pairs)
    came = await bring_in(call.tasks, file, paths=paths, unsigned=unsigned, trust=trust)
    call.answer(came, drawing.line(f"imported task {came.task_id!r} from {came.host}"))
    for note in came.notes:
        call.note(f"note: {note}")
    if came.is_copy:
        call.note("note: the task is a copy and is paused, because the original may still be running")


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not OLD=NEW", param_hint="--map")
    return old, new
