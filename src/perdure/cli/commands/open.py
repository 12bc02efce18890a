"""Create a task, or attach to it if it exists."""

from __future__ import annotations

from typing import Any

import click

from perdure._ground.encoding.json_values import plain
from perdure.cli.base import Invocation, Verb, id_argument, json_option
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@json_option("--state", help="The first state of a new task (default: {}). An existing task keeps its own.")
@click.option(
    "--again",
    is_flag=True,
    help="If the task has finished, start a new one under its id; `perdure history` lists the old one.",
)
@click.pass_obj
async def command(call: Invocation, id: str, state: Any, again: bool) -> None:
    """Create a task, or attach to it if it exists. open never changes the status of a task.

    \b
    perdure open nightly-report --state '{"done": 0}'
    """
    task = await call.tasks.open(id, state=state, again=again)
    record = await task.record()
    note = "" if not task.created else "created"
    call.answer({**plain(record), "created": task.created}, words.task_line(record, note))
