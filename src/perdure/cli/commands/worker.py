"""Run the tasks of your durable functions."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from typing import Any

import click

from perdure.cli.base import Invocation, Verb, length


@click.command(cls=Verb)
@click.argument("target", metavar="MODULE:APP")
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="N",
    help="How many tasks to run at a time.",
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
@click.option(
    "--stalled-after",
    type=length,
    default="15m",
    show_default=True,
    metavar="15m",
    help="Report an attempt that makes no progress for this long.",
)
@click.option("--restart-stalled", is_flag=True, help="Give the tasks of stalled attempts to other workers.")
@click.option(
    "--spawn", metavar="COMMAND", help="When a worker is lost, run COMMAND with the id of its task (default: nothing)."
)
@click.pass_obj
def command(
    call: Invocation,
    target: str,
    concurrency: int,
    queues: tuple[str, ...],
    grace: timedelta,
    stalled_after: timedelta,
    restart_stalled: bool,
    spawn: str | None,
) -> Any:
    """Run the tasks of the durable functions in your module.

    MODULE:APP is my.module:app or agent.py:app. SIGTERM, Ctrl-C and `perdure drain` stop the worker: it brings its
    tasks to their next safe point and gives them back, and other workers continue them. Exit code 7 when the store
    cannot be reached at the start.
    """
    import shlex

    from perdure._worker import Settings
    from perdure.cli.base import load_app, tell_warnings_safely
    from perdure.cli.processes import work

    if call.store_url is not None:
        os.environ["PERDURE_URL"] = call.store_url
    tell_warnings_safely()
    app = load_app(target)
    settings = Settings(
        concurrency=concurrency,
        queues=queues or tuple(dict.fromkeys(("default", *app._queues))),
        limits=app._queues,
        grace=grace,
        stalled_after=stalled_after,
        restart_stalled=restart_stalled,
        spawn=shlex.split(spawn) if spawn else None,
    )
    raise click.exceptions.Exit(asyncio.run(work(call, app, settings)))
