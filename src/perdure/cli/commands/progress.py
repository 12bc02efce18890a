"""Record the progress of an operation of a task."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_option
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.argument("operation")
@click.option("--done", type=int, metavar="N", help="How many items are done (default: unknown).")
@click.option("--total", type=int, metavar="N", help="How many items there are (default: unknown).")
@click.option(
    "--percent", type=float, metavar="0-100", help="How much is done, in percent (default: from --done and --total)."
)
@json_option("--cursor", help="Where the next attempt continues (default: none).")
@click.pass_obj
async def command(call: Invocation, /, id: str, operation: str, **how_far: Any) -> None:
    """Record the progress of an OPERATION of a task.

    \b
    perdure progress nightly-report copy --done 15 --total 42
    """
    task = await call.tasks.handle(id)
    await task.mark_progress(operation, **how_far)
    record = await task.record()
    call.answer(record, words.task_line(record))
