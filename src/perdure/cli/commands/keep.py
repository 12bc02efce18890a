"""Show, replace or stop the keeper that holds shells and services."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, VerbGroup
from perdure.cli.output import Fields, line, words


@click.group(cls=VerbGroup)
def command() -> None:
    """Show, replace or stop the keeper that holds shells and services.

    The first process that needs a keeper starts it: one for each user and store. It outlives that process.
    """


@command.command("status")
@click.pass_obj
async def status(call: Invocation) -> None:
    """Show where the keeper runs, what it holds, and what would end it."""
    from perdure._runtime import keeper_control as keeping

    if call.server is not None:
        told = (await call.server.get("/v1/keeper")).value["keeper"]
        found = None if told is None else keeping.Keeping(**told)
    else:
        found = await keeping.status(call.store)
    if found is None:
        call.answer(None, line("no keeper runs for this store; the first shell or service starts one"))
        return
    pairs = {
        "keeper": f"process {found.pid}, under anchor {found.anchor}, {words.size(found.memory)} of memory",
        "holds": f"{found.alive} units; {found.ended} have ended",
        "kinds": ", ".join(found.kinds),
        "home": found.home,
        "live": found.live,
        "ends with": found.ends_with,
        "unreadable": "; ".join(found.unreadable),
        "note": "the keeper runs another version of perdure; `perdure keep restart` replaces it"
        if found.is_other
        else "",
    }
    call.answer(found, Fields([(name, [text]) for name, text in pairs.items() if text]))


@command.command("restart")
@click.pass_obj
async def restart(call: Invocation) -> None:
    """Replace the keeper with this version of perdure. Units keep running; attached terminals reconnect."""
    from perdure._runtime import keeper_control as keeping

    if call.server is not None:
        was_there = (await call.server.send("POST", "/v1/keeper/restart")).value["was_there"]
    else:
        was_there = await keeping.replace(call.store)
    call.answer(
        {"replaced": was_there}, line("the keeper was replaced" if was_there else "no keeper runs for this store")
    )


@command.command("stop")
@click.option(
    "--units",
    "units_too",
    is_flag=True,
    help="End the units too. Without it, a keeper that holds units is not stopped.",
)
@click.pass_obj
async def stop(call: Invocation, units_too: bool) -> None:
    """Stop the keeper; with --units, end everything that it holds."""
    from perdure._runtime import keeper_control as keeping

    if call.server is not None:
        was_there = (await call.server.send("POST", "/v1/keeper/stop", {"units": units_too})).value["was_there"]
    else:
        was_there = await keeping.stop(call.store, units_too=units_too)
    call.answer(
        {"stopped": was_there}, line("the keeper was stopped" if was_there else "no keeper runs for this store")
    )
