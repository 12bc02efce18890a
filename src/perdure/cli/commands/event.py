"""Send events, and list what they led to."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, VerbGroup, json_value
from perdure.cli.output import Cell, Table, line, words


@click.group(cls=VerbGroup)
def command() -> None:
    """Send events, and list what they led to. `perdure trigger add` sets what an event leads to."""


@command.command("send")
@click.argument("name", metavar="NAME")
@click.argument("data", metavar="[JSON|@FILE|-]", type=json_value, default="null")
@click.option(
    "--id",
    "event_id",
    metavar="ID",
    help="The event's id. A second event with the same id is ignored (default: a new id).",
)
@click.pass_obj
async def send(call: Invocation, name: str, data: Any, event_id: str | None) -> None:
    """Send an event. When this returns, the event is stored; the next free worker acts on it."""
    sent = await call.app.events.send(name, data, id=event_id)
    call.answer(sent, line(Cell(f"{sent.name} {sent.id}", "strong"), "" if sent.is_new else ": already sent"))


@command.command("list")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="List at most this many.")
@click.pass_obj
async def list_(call: Invocation, limit: int) -> None:
    """List the stored events, each with what it led to."""
    found = await call.app.events.list(limit=limit)
    rows = [
        (
            Cell(one.name, "strong"),
            one.id,
            words.age(one.received_at, call.now),
            "" if one.is_over else "waiting",
            _led(one),
        )
        for one in found
    ]
    table = Table(("event", "id", "received", "", "led to"), rows) if rows else line(f"no events in {call.place}")
    call.answer_items(found, table)


def _led(one: Any) -> Cell:
    if one.refused:
        return Cell("; ".join(f"{trigger}: {why}" for trigger, why in one.refused.items()), "failed")
    return Cell(", ".join(one.led_to.values()))
