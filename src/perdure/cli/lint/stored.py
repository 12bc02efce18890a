"""Check the tasks of a store: ids, gaps between checkpoints, secrets, tasks that ended long ago."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from perdure._model import TaskRecord
from perdure._runtime import is_telling, looks_secret
from perdure._tasks import Task, Tasks, store_of
from perdure.cli.lint.findings import Finding
from perdure.cli.lint.ids import check_task_id
from perdure.memory import verify_resumable

# A crash after so long without a checkpoint costs too much repeated work.
GAP = timedelta(minutes=10)
OLD = timedelta(days=7)
_MOST_NAMED = 5
_MOST_TASKS = 10_000


async def check_tasks(tasks: Tasks, now: datetime, resume: str | None = None) -> tuple[list[Finding], int]:
    """Check the tasks of a namespace; returns the findings and the number of tasks. `resume` tries to continue each."""
    found: list[Finding] = []
    old: list[str] = []
    seen, cursor = 0, None
    while seen < _MOST_TASKS:
        page = await tasks.list(limit=100, cursor=cursor)
        for record in page.items:
            seen += 1
            found += _of_record(record)
            if record.is_finished:
                old += [record.id] if now - (record.finished_at or now) > OLD else []
                continue
            task = await tasks.handle(record.id)
            found += await _of_checkpoints(task, record, now)
            if resume is not None:
                found += await _of_resuming(task, resume)
        cursor = page.cursor
        if cursor is None:
            break
    return found + _cleanup(old), seen


def _of_record(record: TaskRecord) -> Iterator[Finding]:
    wrong = check_task_id(record.id)
    if wrong:
        yield Finding("id", record.id, f"the id {record.id!r} {wrong}", "choose ids that name the work")
    for path in secrets_in(record.state):
        yield Finding(
            "secret-in-state",
            record.id,
            f"the state at {path!r} looks like a secret",
            "keep a reference (Secret) or leave it out of the state; seal the store with a key",
        )


def secrets_in(value: Any, path: str = "", name: str = "") -> list[str]:
    """The paths in a value where a text looks like a secret."""
    if isinstance(value, Mapping):
        return [
            found for key, item in value.items() for found in secrets_in(item, f"{path}.{key}".lstrip("."), str(key))
        ]
    if isinstance(value, list | tuple):
        return [found for place, item in enumerate(value) for found in secrets_in(item, f"{path}[{place}]", name)]
    if not isinstance(value, str) or not value or value.startswith(("secret://", "env:")):
        return []
    return [path] if looks_secret(value) or (is_telling(name) and name.lower() != "key" and " " not in value) else []


async def _of_checkpoints(task: Task, record: TaskRecord, now: datetime) -> list[Finding]:
    """Gaps between the checkpoints of an agent. A durable function has a journal instead."""
    if record.started_at is None or await store_of(task).query("get_call", uid=task.uid):
        return []
    moments = [record.started_at] + [checkpoint.timestamp async for checkpoint in task.checkpoints()]
    if record.status == "running":
        moments.append(now)
    gaps = [after - before for before, after in pairwise(moments)]
    widest = max(gaps, default=timedelta(0))
    if widest <= GAP:
        return []
    minutes = int(widest.total_seconds() // 60)
    what = f"{minutes} minutes without a checkpoint; a crash would cost all of them"
    return [Finding("checkpoint-gap", record.id, what, "make a checkpoint after each piece of work worth keeping")]


async def _of_resuming(task: Task, resume: str) -> list[Finding]:
    verdict = await verify_resumable(task.state, resume)
    if verdict.is_resumable:
        return []
    what = f"its state is not enough to continue from: {verdict.problem}"
    return [Finding("not-self-contained", task.id, what, "put what is missing into the checkpoint")]


def _cleanup(old: list[str]) -> list[Finding]:
    if not old:
        return []
    named = ", ".join(old[:_MOST_NAMED]) + (f" and {len(old) - _MOST_NAMED} more" if len(old) > _MOST_NAMED else "")
    what = f"{len(old)} tasks ended more than {OLD.days} days ago: {named}"
    return [
        Finding("cleanup", "store", what, f"perdure gc --finished-for {OLD.days}d, after you have read their results")
    ]
