"""Serve the store over HTTP, with a dashboard."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb
from perdure.cli.processes import server_options


@click.command(cls=Verb)
@server_options
@click.option("--listen-fd", type=int, hidden=True)
@click.pass_obj
def command(call: Invocation, /, listen_fd: int | None, **options: Any) -> None:
    """Serve the store over HTTP, with a dashboard, until SIGTERM or Ctrl-C.

    serve prints a link that opens the dashboard once. Programs need an API key: `perdure api-keys make`. A port that is
    in use is refused; `perdure up` takes the next free one. serve ends open requests within 10 s and returns 0.
    """
    import socket

    from perdure.cli.processes import ServerChoice, Serving
    from perdure.server import Listener

    serving = Serving(call, ServerChoice.of(options))
    if listen_fd is None:
        serving.require_store()
        serving.run(serving.listen(may_move=False))
    else:  # started by `perdure up`, which holds the socket while it restarts a server that died
        given = socket.socket(fileno=listen_fd)
        serving.run(Listener(given, options["host"] or "127.0.0.1", given.getsockname()[1]))
