"""Show a task's terminal and type into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perdure.cli.base import Invocation, Verb, id_argument

if TYPE_CHECKING:
    from perdure._runtime import Command


@click.command(cls=Verb)
@id_argument()
@click.argument("unit", required=False)
@click.option("--take", is_flag=True, help="Take the right to type from the person who has it.")
@click.option("--events", is_flag=True, help="Print the task's events as they happen, until the task ends.")
@click.pass_obj
def command(call: Invocation, id: str, unit: str | None, take: bool, events: bool) -> None:
    """Show the terminal of a task's command or shell and type into it. Ctrl-] detaches; the command keeps running.

    Several people can watch; one can type. Without UNIT, perdure shows the command that `perdure run` started, or else
    the task's only terminal.
    """
    from perdure._ground.bridge import drive

    if events:
        from perdure.cli.output import follow

        drive(follow(call, id, last=None))
        return
    from perdure.cli.processes import Attached

    found = drive(_found(call, id, unit))
    if take:
        drive(found.take())
    code = Attached(found).show()
    if code is None:
        call.note(f"detached; `perdure attach {id}` shows the terminal again")
        return
    raise click.exceptions.Exit(code if code >= 0 else 128 - code)


async def _found(call: Invocation, id: str, name: str | None) -> Command:
    from perdure._runtime import command_runs as running
    from perdure.errors import InvalidInput, NotFound

    rt = await call.app.runtime(id)
    units = [one for one in await running.terminals(rt) if name is None or one.name == name]
    if not units:
        raise NotFound("terminal", name or id, "the keeper", do=f"`perdure units {id}` lists the task's units")
    chosen = [one for one in units if one.name == running.COMMAND] if name is None else units
    if not chosen and len(units) > 1:
        names = ", ".join(one.name for one in units)
        raise InvalidInput(f"task {id!r} has several terminals: {names}", do="name one: perdure attach ID NAME")
    return (chosen or units)[-1]
