"""Print a one-time link to a running server."""

from __future__ import annotations

from datetime import timedelta

import click

from perdure.cli.base import Invocation, Verb, length
from perdure.cli.output import line


@click.command(cls=Verb)
@click.option(
    "--scope",
    type=click.Choice(["viewer", "operator", "admin"]),
    default="admin",
    show_default=True,
    help="What the session may do.",
)
@click.option(
    "--for", "lasts", type=length, default="10m", show_default=True, metavar="10m", help="How long the link is good."
)
@click.pass_obj
async def command(call: Invocation, scope: str, lasts: timedelta) -> None:
    """Print a link that opens the dashboard of a running server once.

    The session is for the namespace that --namespace names. An admin's session can change it.
    """
    from perdure._ground.ids import user_name
    from perdure.errors import NotFound
    from perdure.server import RunningServers, Sessions, Vault, scopes_of

    call.require_store()
    vault = Vault(call.app)
    try:
        servers = await RunningServers(vault).all()
        if not servers:
            do = "`perdure serve` or `perdure up` starts one, and prints a link"
            raise NotFound("running server", "", call.place, do=do)
        sessions = Sessions(vault, timedelta(hours=12), lasts)
        code = await sessions.make_link(user_name(), scopes_of([scope]), call.namespace, is_local=scope == "admin")
    finally:
        await vault.close()
    link = f"{servers[0].url}/link#{code}"
    call.answer({"link": link, "url": servers[0].url, "scope": scope}, line(link))
