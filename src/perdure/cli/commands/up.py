"""Run several workers, and restart one that dies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from perdure.cli.base import Invocation, Verb, length

# How much longer than the grace of a drain a worker may take before it is killed.
_MORE_SECONDS = 5.0


@click.command(cls=Verb)
@click.argument("target", metavar="MODULE:APP")
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
@click.pass_obj
def command(
    call: Invocation, target: str, workers: int, concurrency: int, queues: tuple[str, ...], grace: timedelta
) -> Any:
    """Run several workers of MODULE:APP, and restart one that dies, after 0.2 s at first and 30 s at most.

    SIGTERM and Ctrl-C drain all workers. A worker that stopped because of `perdure drain` is not restarted.
    """
    import sys

    from perdure._ground import json_values as values
    from perdure.cli.output import blocks as drawing
    from perdure.cli.processes import Supervisor, worker_argv

    def say(line: str, value: dict[str, object]) -> None:
        if sys.stdout is not None:
            print(values.as_json(value, ascii=True) if call.json else drawing.safe(line), flush=True)

    options = ["--concurrency", str(concurrency), "--grace", f"{int(grace.total_seconds() * 1000)}ms"]
    options += [part for queue in queues for part in ("--queue", queue)]
    options += ["--store", call.store_url] if call.store_url is not None else []
    options += ["--json"] if call.json else []
    supervisor = Supervisor(worker_argv(target, options), workers, grace.total_seconds() + _MORE_SECONDS, say)
    raise click.exceptions.Exit(supervisor.run())
