"""Say that a task has failed, and how."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_object, json_option
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.argument("message")
@json_option("--error", type=json_object, help="More about it: an object, kept with the message.")
@click.pass_obj
async def command(call: Invocation, id: str, message: str, error: dict[str, Any] | None) -> None:
    """Say that a task has failed, and how. `perdure resume` begins a new attempt of it.

    \b
    perdure fail nightly-report "2 tests failed" --error '{"failedTests": ["a", "b"]}'
    """
    task = await call.tasks.handle(id)
    await task.fail({**(error or {}), "message": message})
    record = await task.record()
    call.answer(record, words.task_line(record))
