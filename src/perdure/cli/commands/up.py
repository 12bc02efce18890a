"""Keep some workers going: one that dies is started again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from perdure.cli.base import Invocation, Verb, length

# Between the grace of a drain and the end of a worker that does not leave.
_MORE_SECONDS = 5.0


@click.command(cls=Verb)
@click.argument("target", metavar="MODULE:APP")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--concurrency", type=click.IntRange(1), default=100, show_default=True, help="Tasks at a time in each.")
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="Take tasks of this queue (repeat).")
@click.option("--grace", type=length, default="10s", show_default=True, help="How long a drain waits for safe points.")
@click.pass_obj
def command(
    call: Invocation, target: str, workers: int, concurrency: int, queues: tuple[str, ...], grace: timedelta
) -> Any:
    """Keep some workers going: one that dies is started again, after a little longer each time.

    SIGTERM and Ctrl-C drain them all. A worker that left because of `perdure drain` is not started again.
    """
    import sys

    from perdure.cli.output import blocks as drawing
    from perdure.cli.output import json_values as values
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
