"""Send a running durable function a word it waits for."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_or_text
from perdure.cli.output import Cell, line


@click.command(cls=Verb)
@id_argument()
@click.argument("name", metavar="NAME")
@click.argument("value", metavar="[JSON]", type=json_or_text, default="null")
@click.option("--once", metavar="WHY", help="A name for what it is sent for: sent again for the same, it is kept once.")
@click.pass_obj
async def command(call: Invocation, id: str, name: str, value: Any, once: str | None) -> None:
    """Send a durable function the word it waits for by `signals.next(NAME, …)`; it is kept if nobody waits yet."""
    task = await call.tasks.handle(id)
    await task.signal(name, value, once=once)
    call.answer({"id": id, "signal": name, "value": value}, line(Cell(id, "strong"), f": sent {name}"))
