"""Tasks: the work of an attempt, for agents that reach perdure over HTTP only."""

from __future__ import annotations

from typing import Any

from msgspec import convert

from perdure.server.encoding import version_tag
from perdure.server.nouns.references import task_of
from perdure.server.requests import Answer, Ask
from perdure.server.shapes.tasks import Completion, Failure, NewCheckpoint, NewItem, NewProgress, seen_by
from perdure.server.table import Nothing, Route
from perdure.types import Checkpoint, TaskRecord, ToolCall

_STATE_LIMIT = 64 * 1024 * 1024


async def checkpoint(ask: Ask[Nothing, NewCheckpoint]) -> Answer:
    task, new = await task_of(ask), ask.body
    pending = convert(new.pending, tuple[ToolCall, ...])
    async with task.attempt():
        made = await task.checkpoint(
            new.state, label=new.label, plan=new.plan, memory=new.memory, partial=new.partial, pending=pending
        )
    return Answer(made, 201)


async def append(ask: Ask[Nothing, NewItem]) -> Answer:
    task, new = await task_of(ask), ask.body
    async with task.attempt():
        made = await task.append(new.path, new.item, label=new.label)
    return Answer(made, 201)


async def progress(ask: Ask[Nothing, NewProgress]) -> Answer:
    task, new = await task_of(ask), ask.body
    async with task.attempt():
        await task.mark_progress(new.operation, percent=new.percent, cursor=new.cursor, done=new.done, total=new.total)
    return Answer(None, 204)


async def complete(ask: Ask[Nothing, Completion]) -> Answer:
    task = await task_of(ask)
    await task.complete(ask.body.result)
    return await _told(ask, task)


async def fail(ask: Ask[Nothing, Failure]) -> Answer:
    task = await task_of(ask)
    await task.fail(ask.body.error)
    return await _told(ask, task)


async def _told(ask: Ask[Any, Any], task: Any) -> Answer:
    record = await task.record()
    return Answer(seen_by(ask.caller, record), etag=version_tag(record.version))


def _write(name: str, does: str, handler: Any, body: Any, **more: Any) -> Route:
    settings: dict[str, Any] = {"method": "POST", "answer": TaskRecord, "once": "may", "statuses": (409,), **more}
    path = f"/v1/tasks/{{task}}/{name}"
    return Route(path=path, handler=handler, does=does, body=body, scopes=("tasks:write",), **settings)


ROUTES = (
    _write(
        "checkpoints",
        "Store a task's state as a checkpoint.",
        checkpoint,
        NewCheckpoint,
        answer=Checkpoint,
        status=201,
        body_limit=_STATE_LIMIT,
    ),
    _write("append", "Add an item to a list in a task's state.", append, NewItem, answer=Checkpoint, status=201),
    _write(
        "progress", "Say how far an operation has come.", progress, NewProgress, method="PUT", answer=None, status=204
    ),
    _write("complete", "Mark a task as completed.", complete, Completion, body_limit=_STATE_LIMIT),
    _write("fail", "Mark a task as failed.", fail, Failure),
)
