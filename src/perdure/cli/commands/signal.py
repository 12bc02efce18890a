"""Send a signal to a durable function."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_or_text
from perdure.cli.output import Cell, line


@click.command(cls=Verb)
@id_argument()
@click.argument("name", metavar="NAME")
@click.argument("value", metavar="[JSON]", type=json_or_text, default="null")
@click.option(
    "--once",
    metavar="WHY",
    help="The cause of the signal. Signals with the same cause are stored once (default: every signal is stored).",
)
@click.pass_obj
async def command(call: Invocation, id: str, name: str, value: Any, once: str | None) -> None:
    """Send a signal to a durable function, which gets it from `signals.next(NAME, …)`.

    perdure stores the signal until the function asks for it.
    """
    task = await call.tasks.handle(id)
    await task.signal(name, value, once=once)
    call.answer({"id": id, "signal": name, "value": value}, line(Cell(id, "strong"), f": sent {name}"))
