"""List the shells, services, files and sessions kept for tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Table, line, words
from perdure.errors import NotFound

if TYPE_CHECKING:
    from perdure._runtime import Record


@click.command(cls=Verb)
@id_argument(required=False)
@click.option("--all", "with_ended", is_flag=True, help="List ended units too.")
@click.option("--forget", is_flag=True, help="Forget ended units and their output.")
@click.option("--release", metavar="NAME", help="End this unit of the task and forget it and its marks.")
@click.option("--sweep", is_flag=True, help="End units whose task has ended.")
@click.pass_obj
async def command(
    call: Invocation, id: str | None, with_ended: bool, forget: bool, release: str | None, sweep: bool
) -> None:
    """List the shells, services, files and sessions kept for all tasks, or for task ID.

    `perdure attach ID NAME` shows the terminal of a shell or command.
    """
    from perdure._runtime import keeper_checkup as checkup
    from perdure._runtime import keeper_control as keeping

    store = call.store
    if sweep:
        await keeping.end(store, await checkup.finished(store, await keeping.units(store)))
    found = [
        one
        for one in await keeping.units(store)
        if one.owner["namespace"] == call.namespace and (id is None or one.owner["task"] == id)
    ]
    if release is not None:
        chosen = [one for one in found if one.name == release]
        if id is None or not chosen:
            raise NotFound("unit", release, f"task {id!r}" if id else "no task", do="`perdure units ID` lists them")
        await keeping.release(store, chosen)
        found = [one for one in await keeping.units(store) if one.owner["task"] == id]
    if forget:
        await keeping.forget(store, found)
    shown = [one for one in found if one.is_alive or (with_ended and not forget)]
    rows = [(one.owner["task"], one.name, one.kind, _process(one), _state(one), _doing(one)) for one in shown]
    table = Table(("task", "name", "kind", "pid", "", "doing"), rows) if rows else line("no units")
    call.answer_items([keeping.shown(one) for one in shown], table)


def _process(record: Record) -> str:
    return str(record.pid) if record.pid and record.is_alive else ""


def _state(record: Record) -> str:
    from perdure._runtime import ending

    if not record.is_alive:
        return str(record.facts.get("why") or ending(record.ended))
    waiting = record.about.get("waiting")
    return f"waits for a {waiting}" if waiting else "alive"


def _doing(record: Record) -> str:
    argv = record.recipe.get("argv") or []
    return words.short(str(record.about.get("running") or " ".join(map(str, argv))), 60)
