"""Carry on tasks of the durable functions in your module."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from typing import Any

import click

from perdure.cli.base import Invocation, Verb, length


@click.command(cls=Verb)
@click.argument("target", metavar="MODULE:APP")
@click.option("--concurrency", type=click.IntRange(1), default=100, show_default=True, help="Tasks at a time.")
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="Take tasks of this queue (repeat).")
@click.option("--grace", type=length, default="10s", show_default=True, help="How long a drain waits for safe points.")
@click.option("--stalled-after", type=length, default="15m", show_default=True, help="Flag attempts without progress.")
@click.option("--restart-stalled", is_flag=True, help="Give the tasks of stalled attempts to others.")
@click.option("--spawn", metavar="COMMAND", help="Run this, with a task's id, when a worker was lost.")
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
    """Carry on tasks of the durable functions in your module.

    MODULE:APP is my.module:app or agent.py:app. Without --queue it takes tasks of the default queue and of those that
    `app.queue(…)` names. SIGTERM, Ctrl-C and `perdure drain` let tasks come to their next
    safe point, give them back and end the worker; others go on with them. Exit 7 when there is no store to begin with.
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
