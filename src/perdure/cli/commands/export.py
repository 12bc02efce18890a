"""Write a task to a file, to continue it elsewhere or to archive it."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import blocks as drawing
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--move", is_flag=True, help="End the task here, so that it runs in one place only.")
@click.option("--workspace/--no-workspace", default=True, help="Include the files of the newest save (default: yes).")
@click.pass_obj
async def command(call: Invocation, id: str, file: str, move: bool, workspace: bool) -> None:
    """Write a task to a file, to continue it elsewhere or to archive it.

    \b
    perdure export deploy deploy.perdure --move
    """
    from perdure import __version__
    from perdure._runtime import export

    done = await export(call.tasks, id, file, move=move, workspace=workspace, version=__version__)
    how = "sealed and signed" if done.is_signed else "with a checksum"
    call.answer(done, drawing.line(f"{done.path}: {words.size(done.size)}, {how}"))
    for note in done.notes:
        call.note(f"note: {note}")
