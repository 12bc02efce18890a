"""List tasks, newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from perdure._model import REASONS, STATUSES, TaskRecord
from perdure.cli.base import Invocation, Verb, pairs_option, since
from perdure.cli.output import Cell, Table, View, bar, line, plain, watch, words


@click.command(cls=Verb)
@click.option("--status", type=click.Choice(STATUSES), help="Only those with this status.")
@click.option("--reason", type=click.Choice(REASONS), help="Only those paused for this reason.")
@click.option("--agent", help="Only those of this agent.")
@pairs_option("--tag", "tags", help="Only those with this tag; may be repeated.")
@click.option("--since", type=since, metavar="7d|MOMENT", help="Only those made since then.")
@click.option("--limit", default=100, show_default=True, help="At most so many.")
@click.option("--cursor", help="Go on where the page before ended.")
@click.option("--archived", is_flag=True, help="Archived ones too.")
@click.option("--watch", "is_watched", is_flag=True, help="Go on showing them while they change, until Ctrl-C.")
@click.pass_obj
async def command(call: Invocation, /, is_watched: bool, **filters: Any) -> None:
    """List tasks, newest first."""
    if is_watched:
        await watch(call, lambda: _view(call, **filters), lambda value: False)
        return
    value, blocks = await _view(call, **filters)
    call.answer(value, *blocks)
    if value["cursor"]:
        call.note(f"there are more: perdure tasks --cursor {value['cursor']}")


async def _view(
    call: Invocation, /, tags: tuple[tuple[str, str], ...], since: timedelta | datetime | None, **filters: Any
) -> View:
    moment = call.now - since if isinstance(since, timedelta) else since
    page = await call.tasks.list(tags=dict(tags), since=moment, **filters)
    left = await _left(call, page.items)
    block = _table(page.items, left, call.now) if page.items else line(f"no tasks to show in {call.place}")
    items = [{**plain(record), "worker_died": record.uid in left} for record in page.items]
    return {"items": items, "cursor": page.cursor}, [block]


async def _left(call: Invocation, records: Sequence[TaskRecord]) -> dict[str, str]:
    """Those that are called running and whose process has died, by uid: what there is to say of them."""
    if not any(record.status == "running" for record in records):
        return {}
    from perdure._tasks import left_by_the_dead

    return {
        left.uid: f"nobody works on it: pid {left.by.process.pid} on {left.by.process.host} has died"
        for left in await left_by_the_dead(call.store)
    }


def _table(records: Sequence[TaskRecord], left: Mapping[str, str], now: datetime) -> Table:
    columns = {
        "id": [Cell(record.id, "strong") for record in records],
        "status": [Cell(record.status, record.status) for record in records],
        "updated": [Cell(words.age(record.updated_at, now), "faint") for record in records],
        "agent": [Cell(record.agent) for record in records],
        "progress": [Cell(_bar(record)) for record in records],
        "": [Cell(words.short(left.get(record.uid) or words.standing(record))) for record in records],
    }
    if not any(_bar(record) for record in records):
        del columns["progress"]
    if not any(record.agent for record in records):
        del columns["agent"]
    return Table(list(columns), list(zip(*columns.values(), strict=True)))


def _bar(record: TaskRecord) -> str:
    return bar(record.progress.percent) if record.progress is not None and not record.is_finished else ""
