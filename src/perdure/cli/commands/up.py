"""Serve the store and run workers; restart what dies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from perdure.cli.base import Invocation, Verb, length
from perdure.cli.processes import server_options

# How much longer than the grace of a drain a worker may take before it is killed.
_MORE_SECONDS = 5.0


@click.command(cls=Verb)
@click.argument("target", metavar="[MODULE:APP]", required=False)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="How many worker processes to run.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="N",
    help="How many tasks each worker runs at a time.",
)
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME",
    help="Take tasks of this queue; repeatable (default: the queue default and those that app.queue() names).",
)
@click.option(
    "--grace",
    type=length,
    default="10s",
    show_default=True,
    metavar="10s",
    help="How long a drain waits for tasks to reach a safe point.",
)
@server_options
@click.pass_obj
def command(
    call: Invocation,
    /,
    target: str | None,
    workers: int,
    concurrency: int,
    queues: tuple[str, ...],
    grace: timedelta,
    **options: Any,
) -> None:
    """Serve the store over HTTP, and run workers of MODULE:APP beside the server.

    up takes the next free port when the port is in use, and restarts a worker or a server that dies, after 0.2 s at
    first and 30 s at most. SIGTERM and Ctrl-C end open requests and drain all workers. A worker that stopped because of
    `perdure drain` is not restarted. Without MODULE:APP, up serves alone.
    """
    from perdure.cli.processes import ServerChoice, Serving

    choice = ServerChoice.of(options)
    if target is None:
        serving = Serving(call, choice)
        call.note("no worker runs here; `perdure up MODULE:APP` runs workers beside the server")
        serving.run(serving.listen(may_move=True))
        return
    worker_options = ["--concurrency", str(concurrency), "--grace", f"{int(grace.total_seconds() * 1000)}ms"]
    worker_options += [part for queue in queues for part in ("--queue", queue)]
    code = _supervise(call, target, workers, worker_options, grace, choice)
    raise click.exceptions.Exit(code)


def _supervise(
    call: Invocation, target: str, workers: int, worker_options: list[str], grace: timedelta, choice: Any
) -> int:
    import sys

    from perdure._ground.encoding import json_values as values
    from perdure.cli.output import blocks as drawing
    from perdure.cli.processes import ServerCommand, Serving, Supervisor, worker_argv
    from perdure.server import has_uvicorn

    def say(line: str, value: dict[str, object]) -> None:
        if sys.stdout is not None:
            print(values.as_json(value, ascii=True) if call.json else drawing.safe(line), flush=True)

    shared = ["--store", call.store_url] if call.store_url is not None else []
    shared += ["--json"] if call.json else []
    argv = worker_argv(target, [*worker_options, *shared])
    patience = grace.total_seconds() + _MORE_SECONDS
    if not has_uvicorn():
        call.note("no server runs beside the workers: pip install 'perdure[server]'")
        return Supervisor(argv, workers, patience, say).run()
    listener = Serving(call, choice).listen(may_move=True)
    with listener.socket:
        namespace = ["--namespace", call.namespace]
        server = ServerCommand([*choice.as_options(), *shared, *namespace], listener.socket)
        return Supervisor(argv, workers, patience, say, server).run()
