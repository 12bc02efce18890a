"""Ask workers to stop; other workers continue their tasks."""

from __future__ import annotations

from datetime import timedelta

import click

from perdure.cli.base import Invocation, Verb, length
from perdure.cli.output import line


@click.command(cls=Verb)
@click.argument("pids", nargs=-1, type=int, metavar="[PID …]")
@click.option("--host", metavar="NAME", help="Only workers of this host (default: all hosts).")
@click.option(
    "--timeout", type=length, default="30s", show_default=True, help="How long to wait for them; then exit code 6."
)
@click.pass_obj
async def command(call: Invocation, pids: tuple[int, ...], host: str | None, timeout: timedelta) -> None:
    """Ask all workers, or those with these PIDs, to stop.

    A worker that was asked takes no new tasks, brings its running tasks to their next safe point, gives them back and
    exits. Other workers continue them at once.
    """
    if call.server is not None:
        from perdure.errors import NotFound

        workers = [one for one in await call.app.workers.list() if one.is_worker and host in (None, one.host)]
        chosen = [one for one in workers if not pids or one.pid in pids]
        if missing := set(pids) - {one.pid for one in chosen}:
            raise NotFound("worker with pid", str(min(missing)), call.place, do="`perdure workers` lists them")
        if chosen:
            await call.app.workers.drain([one.id for one in chosen], wait=timeout)
        told = {"drained": [{"host": one.host, "pid": one.pid} for one in chosen]}
        call.answer(told, line(f"{len(chosen)} worker{'' if len(chosen) == 1 else 's'} drained"))
        return
    from perdure._worker import drain_workers

    drained = await drain_workers(call.store, pids=pids, host=host, timeout=timeout)
    count = len(drained)
    value = {"drained": [{"host": worker.process.host, "pid": worker.process.pid} for worker in drained]}
    call.answer(value, line(f"{count} worker{'' if count == 1 else 's'} drained"))
