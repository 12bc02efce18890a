"""List who is told what happens to tasks, and what is in the way."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb
from perdure.cli.output import Cell, Table, line


@click.command(cls=Verb)
@click.pass_obj
async def command(call: Invocation) -> None:
    """List who is told what happens to tasks (`app.on`), and what is in the way while one is told again."""
    from perdure._tasks import handlers_of

    found = {one.key: one.value for one in await handlers_of(call.store).all()}
    rows = [
        (Cell(name, "strong"), f"{one.event} {one.reason or ''}".rstrip(), Cell(one.trouble, "failed"))
        for name, one in found.items()
    ]
    table = Table(("handler", "is told", "trouble"), rows) if rows else line(f"no handlers in {call.place}")
    call.answer_items(
        [
            {"name": name, "event": one.event, "reason": one.reason, "trouble": one.trouble}
            for name, one in found.items()
        ],
        table,
    )
