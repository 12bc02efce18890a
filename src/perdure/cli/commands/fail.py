"""Mark a task as failed."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_object, json_option
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.argument("message")
@json_option(
    "--error", type=json_object, help="More about the error: a JSON object, stored with the message (default: none)."
)
@click.pass_obj
async def command(call: Invocation, id: str, message: str, error: dict[str, Any] | None) -> None:
    """Mark a task as failed with MESSAGE. `perdure resume` starts a new attempt.

    \b
    perdure fail nightly-report "2 tests failed" --error '{"failedTests": ["a", "b"]}'
    """
    task = await call.tasks.handle(id)
    await task.fail({**(error or {}), "message": message})
    record = await task.record()
    call.answer(record, words.task_line(record))
