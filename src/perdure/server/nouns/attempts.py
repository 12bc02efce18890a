"""Tasks: the work of an attempt, for agents that reach perdure over HTTP only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct, ValidationError, convert

from perdure._tasks import Task, read_state_at
from perdure.errors import InvalidInput, NotFound
from perdure.server.encoding import version_tag
from perdure.server.nouns.references import task_of
from perdure.server.problems import HttpProblem
from perdure.server.requests import Answer, Ask
from perdure.server.shapes.tasks import (
    Completion,
    Failure,
    NewCheckpoint,
    NewItem,
    NewProgress,
    Strict,
    seconds,
    seen_by,
)
from perdure.server.table import Nothing, Route
from perdure.types import Checkpoint, TaskRecord, ToolCall

_STATE_LIMIT = 64 * 1024 * 1024


class NewHolder(Strict, frozen=True, kw_only=True):
    """A process elsewhere that will work on tasks."""

    host: str
    pid: int
    boot_id: str = ""
    user: str = ""
    lease: float = 30.0  # seconds it may be silent


class Registered(Struct, frozen=True):
    """The token is shown once. It goes into the header Perdure-Holder, never into an address."""

    holder: str
    token: str
    lease: float


class NewAttempt(Strict, frozen=True, kw_only=True):
    take_over: bool = False


class Begun(Struct, frozen=True):
    """An attempt: its fence goes into the header Perdure-Fence of each write."""

    fence: str
    task: TaskRecord


async def register(ask: Ask[Nothing, NewHolder]) -> Answer:
    new = ask.body
    made = await ask.app.holders.register(
        host=new.host, pid=new.pid, boot_id=new.boot_id, user=new.user, lease=seconds("lease", new.lease)
    )
    return Answer(Registered(made.worker, made.token, made.lease.total_seconds()), 201)


async def beat(ask: Ask[Nothing, None]) -> Answer:
    try:
        await ask.app.holders.beat(_token(ask))
    except NotFound as gone:
        raise HttpProblem(410, "holder_gone", gone.what, kept=gone.kept, do=gone.do) from None
    return Answer(None, 204)


async def leave(ask: Ask[Nothing, None]) -> Answer:
    await ask.app.holders.leave(_token(ask))
    return Answer(None, 204)


def _token(ask: Ask[Any, Any]) -> str:
    token = ask.headers.get("perdure-holder")
    if token is None:
        raise HttpProblem(400, "holder_required", "this request needs the header Perdure-Holder")
    return token


async def begin(ask: Ask[Nothing, NewAttempt]) -> Answer:
    task = await task_of(ask)
    fence = await ask.app.holders.hold_for(_token(ask), task.id, take_over=ask.body.take_over)
    held = await ask.app.holders.task(task.id, fence)
    record = await held.record()
    return Answer(Begun(fence, seen_by(ask.caller, record)), 201, version_tag(record.version))


async def give_back(ask: Ask[Nothing, None]) -> Answer:
    task = await task_of(ask)
    fence = ask.headers.get("perdure-fence")
    if fence is None:
        raise HttpProblem(400, "fence_required", "this request needs the header Perdure-Fence")
    await ask.app.holders.release(task.id, fence)
    return Answer(None, 204)


async def checkpoint(ask: Ask[Nothing, NewCheckpoint]) -> Answer:
    new = ask.body
    pending = _tool_calls(new.pending)
    async with _writing(ask) as task:
        if new.base is not None:
            await read_state_at(task, new.base)
        made = await task.checkpoint(
            new.state,
            label=new.label,
            plan=new.plan,
            memory=new.memory,
            partial=new.partial,
            pending=pending,
            once=ask.once,
        )
    return Answer(made, 201)


def _tool_calls(given: Any) -> tuple[ToolCall, ...]:
    try:
        return convert(given, tuple[ToolCall, ...])
    except ValidationError as error:
        raise InvalidInput(f"pending: {error}") from None


async def append(ask: Ask[Nothing, NewItem]) -> Answer:
    new = ask.body
    async with _writing(ask) as task:
        made = await task.append(new.path, new.item, label=new.label, once=ask.once)
    return Answer(made, 201)


async def progress(ask: Ask[Nothing, NewProgress]) -> Answer:
    new = ask.body
    async with _writing(ask) as task:
        await task.mark_progress(new.operation, percent=new.percent, cursor=new.cursor, done=new.done, total=new.total)
    return Answer(None, 204)


async def complete(ask: Ask[Nothing, Completion]) -> Answer:
    task = await _task_to_end(ask)
    await task.complete(ask.body.result, once=ask.once)
    return await _told(ask, task)


async def fail(ask: Ask[Nothing, Failure]) -> Answer:
    task = await _task_to_end(ask)
    await task.fail(ask.body.error, once=ask.once)
    return await _told(ask, task)


@asynccontextmanager
async def _writing(ask: Ask[Any, Any]) -> AsyncIterator[Task]:
    """The task, to be written by its holder. Without a fence the server takes the free lease for this one call."""
    task = await task_of(ask)
    if (fence := ask.headers.get("perdure-fence")) is not None:
        yield await ask.app.holders.task(task.id, fence)
    else:
        async with task.attempt():
            yield task


async def _task_to_end(ask: Ask[Any, Any]) -> Task:
    task = await task_of(ask)
    fence = ask.headers.get("perdure-fence")
    return task if fence is None else await ask.app.holders.task(task.id, fence)


async def _told(ask: Ask[Any, Any], task: Task) -> Answer:
    record = await task.record()
    return Answer(seen_by(ask.caller, record), etag=version_tag(record.version))


def _write(name: str, does: str, handler: Any, body: Any, **more: Any) -> Route:
    settings: dict[str, Any] = {"method": "POST", "answer": TaskRecord, "once": "may", "statuses": (409,), **more}
    settings.setdefault("headers", {"Perdure-Fence": "may"})
    path = f"/v1/tasks/{{task}}/{name}"
    return Route(path=path, handler=handler, does=does, body=body, scopes=("tasks:write",), **settings)


ROUTES = (
    Route(
        method="POST",
        path="/v1/holders",
        handler=register,
        does="Register a process elsewhere that will work on tasks.",
        scopes=("tasks:write",),
        body=NewHolder,
        answer=Registered,
        status=201,
    ),
    Route(
        method="POST",
        path="/v1/holders/{holder}/beat",
        handler=beat,
        does="Say that a holder lives.",
        scopes=("tasks:write",),
        status=204,
        statuses=(410,),
        headers={"Perdure-Holder": "must"},
    ),
    Route(
        method="DELETE",
        path="/v1/holders/{holder}",
        handler=leave,
        does="Give a holder's leases back and forget it.",
        scopes=("tasks:write",),
        status=204,
        headers={"Perdure-Holder": "must"},
    ),
    _write(
        "attempt",
        "Begin an attempt at a task.",
        begin,
        NewAttempt,
        answer=Begun,
        status=201,
        once="no",
        headers={"Perdure-Holder": "must"},
    ),
    Route(
        method="DELETE",
        path="/v1/tasks/{task}/attempt",
        handler=give_back,
        does="Give a task back.",
        scopes=("tasks:write",),
        status=204,
        headers={"Perdure-Fence": "must"},
    ),
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
