"""Stop tasks from outside, whatever their code does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perdure.cli.base import Invocation, VerbGroup, id_argument
from perdure.cli.output import Cell, Table, line, words

if TYPE_CHECKING:
    from perdure._durable import Switch


@click.group(cls=VerbGroup)
def command() -> None:
    """Stop one task or all tasks from outside, and release them again.

    From 250 ms after the switch is turned on, a stopped task starts no step, effect or model call, and no worker takes
    it. An effect that is running finishes and is recorded. The switch never changes a task's status.

    \b
    perdure kill-switch on --why "it mails customers"
    perdure kill-switch off
    """


@command.command("on")
@id_argument(required=False)
@click.option("--why", default="", metavar="TEXT", help="The reason, shown to people (default: none).")
@click.pass_obj
async def on(call: Invocation, id: str | None, why: str) -> None:
    """Stop the task ID, or without ID all tasks of the namespace."""
    await call.app.kill_switch.on(id, why=why)
    await _tell(call)


@command.command("off")
@id_argument(required=False)
@click.pass_obj
async def off(call: Invocation, id: str | None) -> None:
    """Release the task ID, or without ID turn off the switch for all tasks. Switches of single tasks stay on."""
    await call.app.kill_switch.off(id)
    await _tell(call)


@command.command("list")
@click.pass_obj
async def list_(call: Invocation) -> None:
    """List the switches that are on."""
    await _tell(call)


async def _tell(call: Invocation) -> None:
    found = await call.app.kill_switch.list()
    call.answer_items(found, Table(("stopped", "since", "by", "why"), [_row(one) for one in found]) if found else _NONE)


_NONE = line("no kill switch is on")


def _row(one: Switch) -> tuple[Cell, str, str, str]:
    who = Cell(one.id or "all tasks", "strong")
    return who, words.clock_time(one.since), words.who(one.by), words.short(one.why)
