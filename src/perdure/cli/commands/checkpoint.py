"""Store a task's state, so that it outlives this process."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_option
from perdure.cli.output import Cell, line, words


@click.command(cls=Verb)
@id_argument()
@json_option("--state", required=True, help="The whole new state; it replaces the one before.")
@click.option("--label", default="", help="A word for people.")
@json_option("--plan", help="What the agent means to do.")
@json_option("--memory", help="What the agent keeps in mind.")
@json_option("--partial", help="What is done half.")
@click.pass_obj
async def command(call: Invocation, /, id: str, state: Any, **what: Any) -> None:
    """Store a task's state, so that it outlives this process, and make it the one to go on from.

    \b
    perdure checkpoint nightly-report --state '{"done": 15}' --label "half of it"
    make-state | perdure checkpoint nightly-report --state -
    """
    task = await call.tasks.handle(id)
    made = await task.checkpoint(state, **what)
    call.answer(made, line(Cell(id, "strong"), f": checkpoint {made.seq} ({words.size(made.size)})"))
