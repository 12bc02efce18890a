"""See, replace or stop the keeper of live things."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, VerbGroup
from perdure.cli.output import Fields, line, words


@click.group(cls=VerbGroup)
def command() -> None:
    """See, replace or stop the keeper of live things.

    It is started by whoever needs it first, one for each user and store, and outlives them.
    """


@command.command("status")
@click.pass_obj
async def status(call: Invocation) -> None:
    """Where the keeper lives, what it holds, and what would end it."""
    from perdure._runtime import keeper_control as keeping

    found = await keeping.status(call.store)
    if found is None:
        call.answer(None, line("no keeper lives for this store; the first shell or service starts one"))
        return
    pairs = {
        "keeper": f"process {found.pid}, under anchor {found.anchor}, {words.size(found.memory)} of memory",
        "holds": f"{found.alive} units; {found.ended} have ended",
        "kinds": ", ".join(found.kinds),
        "home": found.home,
        "live": found.live,
        "ends with": found.ends_with,
        "unreadable": "; ".join(found.unreadable),
        "note": "it runs another perdure than this one; `perdure keep restart` replaces it" if found.is_other else "",
    }
    call.answer(found, Fields([(name, [text]) for name, text in pairs.items() if text]))


@command.command("restart")
@click.pass_obj
async def restart(call: Invocation) -> None:
    """Replace the keeper by this perdure's. Units notice nothing; who is attached connects anew."""
    from perdure._runtime import keeper_control as keeping

    was_there = await keeping.replace(call.store)
    call.answer({"replaced": was_there}, line("the keeper was replaced" if was_there else "no keeper lives"))


@command.command("stop")
@click.option("--units", "units_too", is_flag=True, help="End the units too. Without it, a keeper with units stays.")
@click.pass_obj
async def stop(call: Invocation, units_too: bool) -> None:
    """Stop the keeper, and with --units all that it holds."""
    from perdure._runtime import keeper_control as keeping

    was_there = await keeping.stop(call.store, units_too=units_too)
    call.answer({"stopped": was_there}, line("the keeper was stopped" if was_there else "no keeper lives"))
