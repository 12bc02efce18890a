"""Mark a task as completed."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_option
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@json_option("--result", help="The task's result (default: null).")
@click.pass_obj
async def command(call: Invocation, id: str, result: Any) -> None:
    """Mark a task as completed. Repeating it with the same result changes nothing."""
    task = await call.tasks.handle(id)
    await task.complete(result)
    record = await task.record()
    call.answer(record, words.task_line(record))
