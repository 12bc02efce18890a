"""Ask workers to leave: their tasks come to a safe point and go on elsewhere."""

from __future__ import annotations

from datetime import timedelta

import click

from perdure.cli.base import Invocation, Verb, length
from perdure.cli.output import line


@click.command(cls=Verb)
@click.argument("pids", nargs=-1, type=int, metavar="[PID …]")
@click.option("--host", help="Only workers of this host.")
@click.option("--timeout", type=length, default="30s", show_default=True, help="Wait so long for them (exit 6).")
@click.pass_obj
async def command(call: Invocation, pids: tuple[int, ...], host: str | None, timeout: timedelta) -> None:
    """Ask workers to leave: all, or those with these pids. They take no new tasks, let those under way come to
    their next safe point, and give them back; other workers go on with them at once.
    """
    from perdure._worker import drain_workers

    drained = await drain_workers(call.store, pids=pids, host=host, timeout=timeout)
    count = len(drained)
    value = {"drained": [{"host": worker.process.host, "pid": worker.process.pid} for worker in drained]}
    call.answer(value, line(f"{count} worker{'' if count == 1 else 's'} drained"))
