"""List the event handlers (`app.on`) and their errors."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb
from perdure.cli.output import Cell, Table, line


@click.command(cls=Verb)
@click.pass_obj
async def command(call: Invocation) -> None:
    """List the event handlers (`app.on`), and the error of each handler that perdure is calling again."""
    from perdure._tasks import handlers_of

    found = {one.key: one.value for one in await handlers_of(call.store).all()}
    rows = [
        (Cell(name, "strong"), f"{one.event} {one.reason or ''}".rstrip(), Cell(one.trouble, "failed"))
        for name, one in found.items()
    ]
    table = Table(("handler", "event", "error"), rows) if rows else line(f"no handlers in {call.place}")
    call.answer_items(
        [
            {"name": name, "event": one.event, "reason": one.reason, "trouble": one.trouble}
            for name, one in found.items()
        ],
        table,
    )
