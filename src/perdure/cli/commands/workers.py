"""List the workers and other processes that use the store."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from perdure._ground.bridge import Nap
from perdure._ground.encoding.json_values import plain
from perdure.cli.base import Invocation, Verb, length
from perdure.cli.output import Cell, Table, line, words

if TYPE_CHECKING:
    from perdure._worker import WorkerRecord

_LOOKS_PER_LEASE = 5
_STYLES = {"alive": "running", "silent": "paused", "dead": "failed"}


@click.command(cls=Verb)
@click.option(
    "--look",
    type=length,
    default="0s",
    show_default=True,
    help="Watch the beats for this long. A process that misses every beat of its lease (5s) is shown as silent.",
)
@click.pass_obj
async def command(call: Invocation, look: timedelta) -> None:
    """List the workers and other processes that use the store: host, pid, leases, queues, functions.

    A process on this machine that has ended is shown as dead at once. `perdure drain` asks workers to stop.
    """
    from perdure._ground.clock import from_environment

    workers, clock = call.app.workers, from_environment()
    found, end = await workers.list(), clock.boottime() + look.total_seconds()
    while found and (left := end - clock.boottime()) > 0:
        await Nap(min(left, min(one.lease for one in found).total_seconds() / _LOOKS_PER_LEASE))
        found = await workers.list()
    rows = [_row(one) for one in found]
    names = ("worker", "host", "pid", "state", "leases", "queues", "functions", "version")
    call.answer_items(
        [plain(one) for one in found], Table(names, rows) if rows else line(f"no workers in {call.place}")
    )


def _row(one: WorkerRecord) -> tuple[Cell | str, ...]:
    leases = str(one.leases) if one.concurrency is None else f"{one.leases} of {one.concurrency}"
    kind = "elsewhere" if one.is_remote else "" if one.is_worker else "program"
    return (
        Cell(one.id, "strong"),
        one.host,
        str(one.pid),
        Cell(f"{one.state}, {one.wish}" if one.wish else one.state, _STYLES[one.state]),
        leases,
        ", ".join(one.queues) or kind,
        words.short(", ".join(one.functions), 60),
        one.version,
    )
