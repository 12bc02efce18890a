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

    if call.server is not None:
        told = (await call.server.get("/v1/handlers")).value["items"]
        items = [{name: one.get(name, "") for name in ("name", "event", "reason", "trouble")} for one in told]
    else:
        kept = await handlers_of(call.store).all()
        items = [
            {"name": one.key, "event": one.value.event, "reason": one.value.reason, "trouble": one.value.trouble}
            for one in kept
        ]
    rows = [
        (Cell(one["name"], "strong"), f"{one['event']} {one['reason'] or ''}".rstrip(), Cell(one["trouble"], "failed"))
        for one in items
    ]
    table = Table(("handler", "event", "error"), rows) if rows else line(f"no handlers in {call.place}")
    call.answer_items(items, table)
