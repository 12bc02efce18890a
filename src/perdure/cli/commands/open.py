"""Open a task: make it if there is none, else leave it as it is."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_option
from perdure.cli.output import plain, words


@click.command(cls=Verb)
@id_argument()
@json_option("--state", help="The state it begins with; {} by default. One that exists keeps its own.")
@click.option("--again", is_flag=True, help="Begin a finished one anew; the old one stays in `perdure history`.")
@click.pass_obj
async def command(call: Invocation, id: str, state: Any, again: bool) -> None:
    """Open a task: make it if there is none, else leave it as it is. Never changes a status.

    \b
    perdure open nightly-report --state '{"done": 0}'
    """
    task = await call.tasks.open(id, state=state, again=again)
    record = await task.record()
    note = "" if not task.created else "made now"
    call.answer({**plain(record), "created": task.created}, words.task_line(record, note))
