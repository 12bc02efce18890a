"""List tasks, newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from perdure._ground.encoding.json_values import plain
from perdure._model import REASONS, STATUSES, Situation, TaskRecord
from perdure.cli.base import Invocation, Verb, pairs_option, since
from perdure.cli.output import Cell, Table, View, bar, line, watch, words


@click.command(cls=Verb)
@click.option("--status", type=click.Choice(STATUSES), help="Only tasks with this status (default: any).")
@click.option("--reason", type=click.Choice(REASONS), help="Only tasks paused for this reason (default: any).")
@click.option("--agent", metavar="NAME", help="Only tasks of this agent (default: any).")
@pairs_option("--tag", "tags", help="Only tasks with this tag; repeatable (default: any).")
@click.option("--since", type=since, metavar="7d|MOMENT", help="Only tasks created since then (default: any time).")
@click.option("--limit", default=100, show_default=True, metavar="N", help="List at most N tasks.")
@click.option(
    "--cursor", metavar="CURSOR", help="Start after the page that printed this cursor (default: the newest task)."
)
@click.option("--archived", is_flag=True, help="Also list archived tasks.")
@click.option("--hidden", is_flag=True, help="Also list tasks that are part of another one, such as tool calls.")
@click.option("--watch", "is_watched", is_flag=True, help="Keep showing the list until Ctrl-C.")
@click.pass_obj
async def command(call: Invocation, /, is_watched: bool, **filters: Any) -> None:
    """List tasks, newest first."""
    if is_watched:
        await watch(call, lambda: _view(call, **filters), lambda value: False)
        return
    value, blocks = await _view(call, **filters)
    call.answer(value, *blocks)
    if value["cursor"]:
        call.note(f"more tasks: perdure tasks --cursor {value['cursor']}")


async def _view(
    call: Invocation, /, tags: tuple[tuple[str, str], ...], since: timedelta | datetime | None, **filters: Any
) -> View:
    moment = call.now - since if isinstance(since, timedelta) else since
    page = await call.tasks.list(tags=dict(tags), since=moment, **filters)
    found = await call.app.situations(page.items)
    block = _table(page.items, found, call.now) if page.items else line(f"no tasks in {call.place}")
    items = [_told(record, found.get(record.uid)) for record in page.items]
    return {"items": items, "cursor": page.cursor}, [block]


def _told(record: TaskRecord, found: Situation | None) -> dict[str, Any]:
    is_left = found is not None and found.holder is not None and found.holder.state == "dead"
    return {**plain(record), "situation": plain(found), "worker_died": is_left}


def _table(records: Sequence[TaskRecord], found: Mapping[str, Situation], now: datetime) -> Table:
    columns = {
        "id": [Cell(record.id, "strong") for record in records],
        "status": [Cell(record.status, record.status) for record in records],
        "updated": [Cell(words.age(record.updated_at, now), "faint") for record in records],
        "agent": [Cell(record.agent) for record in records],
        "progress": [Cell(_bar(record)) for record in records],
        "why": [Cell(_why(record, found.get(record.uid))) for record in records],
    }
    if not any(_bar(record) for record in records):
        del columns["progress"]
    if not any(record.agent for record in records):
        del columns["agent"]
    return Table(list(columns), list(zip(*columns.values(), strict=True)))


def _why(record: TaskRecord, found: Situation | None) -> str:
    """Why it is not at its end; of one that is, what it was for or what it failed with."""
    if found is None or found.kind == "completed":
        return words.short(words.standing(record))
    said = found.say if found.kind in ("failed", "cancelled") else f"{found.kind}: {found.say}"
    return words.short(said)


def _bar(record: TaskRecord) -> str:
    return bar(record.progress.percent) if record.progress is not None and not record.is_finished else ""
