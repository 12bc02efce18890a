"""Store a task's state as a checkpoint."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_option
from perdure.cli.output import Cell, line, words


@click.command(cls=Verb)
@id_argument()
@json_option("--state", required=True, help="The whole new state. It replaces the state before.")
@click.option(
    "--label", default="", metavar="TEXT", help="A name that people recognise the checkpoint by (default: none)."
)
@json_option("--plan", help="The agent's plan (default: none).")
@json_option("--memory", help="The agent's memory (default: none).")
@json_option("--partial", help="Half-finished results (default: none).")
@click.pass_obj
async def command(call: Invocation, /, id: str, state: Any, **what: Any) -> None:
    """Store a task's state as a checkpoint. The next attempt continues from it.

    \b
    perdure checkpoint nightly-report --state '{"done": 15}' --label "half of it"
    make-state | perdure checkpoint nightly-report --state -
    """
    task = await call.tasks.handle(id)
    made = await task.checkpoint(state, **what)
    call.answer(made, line(Cell(id, "strong"), f": checkpoint {made.seq} ({words.size(made.size)})"))
