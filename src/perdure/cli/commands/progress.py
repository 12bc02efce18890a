"""Say how far an operation of a task has come."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_option
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.argument("operation")
@click.option("--done", type=int, help="How many are done.")
@click.option("--total", type=int, help="How many there are.")
@click.option("--percent", type=float, help="How much is done, 0 to 100.")
@json_option("--cursor", help="Where the next attempt goes on.")
@click.pass_obj
async def command(call: Invocation, /, id: str, operation: str, **how_far: Any) -> None:
    """Say how far an operation of a task has come.

    \b
    perdure progress nightly-report copy --done 15 --total 42
    """
    task = await call.tasks.handle(id)
    await task.mark_progress(operation, **how_far)
    record = await task.record()
    call.answer(record, words.task_line(record))
