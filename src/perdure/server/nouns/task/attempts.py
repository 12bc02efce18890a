"""Tasks: the work of an attempt, for agents that reach perdure over HTTP only."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from msgspec import Struct, ValidationError, convert

from perdure._ground.exception_text import in_one_line, printable
from perdure._ground.secrets.known_secrets import redact
from perdure._tasks import Task, Uncaught, end_held_by_error, held_in_row, in_one_call, read_state_at
from perdure.errors import InvalidInput, NotFound
from perdure.server.http import Answer, Ask, HttpProblem, version_tag
from perdure.server.nouns.references import base_of, glance_at, task_of
from perdure.server.nouns.task.control import paused
from perdure.server.shapes.tasks import (
    AttemptError,
    Completion,
    Failure,
    NewCheckpoint,
    NewItem,
    NewPause,
    NewProgress,
    Strict,
    seconds,
    seen_by,
)
from perdure.server.table import Nothing, Route
from perdure.types import Checkpoint, TaskRecord, ToolCall

R = TypeVar("R")

_LONGEST_LINE, _LONGEST_TRACE = 1000, 6000  # characters of an exception that are kept


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
    await ask.app.holders.release(task.id, _fence(ask))
    return Answer(None, 204)


def _fence(ask: Ask[Any, Any]) -> str:
    fence = ask.headers.get("perdure-fence")
    if fence is None:
        raise HttpProblem(400, "fence_required", "this request needs the header Perdure-Fence")
    return fence


async def end_by_error(ask: Ask[Nothing, AttemptError]) -> Answer:
    _fence(ask)
    told = ask.body
    name, message = (printable(redact(in_one_line(text)))[:_LONGEST_LINE] for text in (told.type, told.message))
    if not name:
        raise InvalidInput("the type of the exception is empty", do="send its name: ValueError")
    trace = printable(redact(told.traceback))[-_LONGEST_TRACE:]
    task = await _task_to_write(ask)
    await end_held_by_error(task, Uncaught(name, message, f"{name}: {message}" if message else name, trace))
    return await _told(ask, task)


async def pause(ask: Ask[Nothing, NewPause]) -> Answer:
    _fence(ask)
    return await paused(ask, await _task_to_write(ask))


async def checkpoint(ask: Ask[Nothing, NewCheckpoint]) -> Answer:
    new = ask.body
    pending = _tool_calls(new.pending)

    async def write(task: Task) -> Checkpoint:
        if (base := base_of(ask, new.base)) is not None:
            await read_state_at(task, base)
        began = time.perf_counter()
        made = await task.checkpoint(
            new.state,
            label=new.label,
            plan=new.plan,
            memory=new.memory,
            partial=new.partial,
            pending=pending,
            once=ask.once,
        )
        ask.server.telemetry.of(ask.caller.namespace).observe("checkpoint_seconds", time.perf_counter() - began)
        return made

    return Answer(await _write(ask, write), 201)


def _tool_calls(given: Any) -> tuple[ToolCall, ...]:
    try:
        return convert(given, tuple[ToolCall, ...])
    except ValidationError as error:
        raise InvalidInput(f"pending: {error}") from None


async def append(ask: Ask[Nothing, NewItem]) -> Answer:
    new = ask.body
    made = await _write(ask, lambda task: task.append(new.path, new.item, label=new.label, once=ask.once))
    return Answer(made, 201)


async def progress(ask: Ask[Nothing, NewProgress]) -> Answer:
    new = ask.body
    how = {"percent": new.percent, "cursor": new.cursor, "done": new.done, "total": new.total}
    await _write(ask, lambda task: task.mark_progress(new.operation, **how))
    return Answer(None, 204)


async def complete(ask: Ask[Nothing, Completion]) -> Answer:
    return await _end(ask, lambda task: task.complete(ask.body.result, once=ask.once))


async def fail(ask: Ask[Nothing, Failure]) -> Answer:
    return await _end(ask, lambda task: task.fail(ask.body.error, once=ask.once))


async def _write(ask: Ask[Any, Any], act: Callable[[Task], Awaitable[R]]) -> R:
    """Have the task written by its holder. Without a fence the server takes the free lease for this one call."""
    task = await _task_to_write(ask)
    if "perdure-fence" in ask.headers:
        return await act(task)
    async with ask.server.turns.of(task.uid):
        return await in_one_call(task, act)


async def _end(ask: Ask[Any, Any], act: Callable[[Task], Awaitable[None]]) -> Answer:
    async def write(task: Task) -> Answer:
        await act(task)
        return await _told(ask, task)

    return await _write(ask, write)


async def _task_to_write(ask: Ask[Any, Any]) -> Task:
    """The task as the holder of the fence writes it; without a fence, as anybody may."""
    fence = ask.headers.get("perdure-fence")
    if fence is None:
        return await task_of(ask)
    _, row = await glance_at(ask)
    return await held_in_row(ask.app.tasks, row, fence)


async def _told(ask: Ask[Any, Any], task: Task) -> Answer:
    record = await task.record()
    return Answer(seen_by(ask.caller, record), etag=version_tag(record.version))


def _route(name: str, does: str, handler: Any, body: Any, **more: Any) -> Route:
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
    _route(
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
    _route(
        "attempt/error",
        "End an attempt by an exception: another one follows, or the task pauses or fails, as its config says.",
        end_by_error,
        AttemptError,
        headers={"Perdure-Fence": "must"},
    ),
    _route(
        "attempt/pause",
        "Pause a task from its own attempt, for a typed reason.",
        pause,
        NewPause,
        headers={"Perdure-Fence": "must", "Perdure-Base": "may"},
        statuses=(202, 409),
        holds_state=True,
    ),
    _route(
        "checkpoints",
        "Store a task's state as a checkpoint.",
        checkpoint,
        NewCheckpoint,
        answer=Checkpoint,
        status=201,
        holds_state=True,
        headers={"Perdure-Fence": "may", "Perdure-Base": "may"},
    ),
    _route("append", "Add an item to a list in a task's state.", append, NewItem, answer=Checkpoint, status=201),
    _route(
        "progress", "Say how far an operation has come.", progress, NewProgress, method="PUT", answer=None, status=204
    ),
    _route("complete", "Mark a task as completed.", complete, Completion, holds_state=True),
    _route("fail", "Mark a task as failed.", fail, Failure),
)
