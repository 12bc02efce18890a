"""Carry a durable function's task on: claim it, read its journal, run it to its end or its next pause."""

from __future__ import annotations

import asyncio
import json
from contextvars import copy_context
from typing import Any

from perdure._durable import scopes
from perdure._durable.functions import DurableFunction
from perdure._durable.run import Paused, Run
from perdure._durable.values import decode_error, encode_error
from perdure._ground import envelope
from perdure._ground.hop import Nap
from perdure._ground.ids import check_id
from perdure._model import Entry, Pause, decode_entry, make_pause
from perdure._store import Store
from perdure._tasks import Task, Tasks, leases, moves
from perdure.errors import (
    Conflict,
    InvalidTransition,
    LeaseHeld,
    PerdureError,
    ReplayDiverged,
    TaskFailed,
)

_LOOK_SECONDS = 0.02


async def start(tasks: Tasks, id: str, function: DurableFunction[..., Any], args: Any, kwargs: Any) -> Task:
    """The task that carries out this call, made now if its id is free."""
    check_id(id)
    arguments = function.signature.encode_arguments(args, kwargs)
    options = function.chosen
    extra = {
        "function": function.name,
        "function_version": function.version,
        "arguments": lambda store, uid: envelope.seal(arguments, kind="arguments", bound_to=uid, ring=store.ring),
        "queue": options.queue,
        "priority": options.priority,
        "parent_uid": None,
        "budget": None,
    }
    while True:
        uid = await tasks._insert("start_function", id, {}, name=function.name, call=extra)
        if uid is not None:
            return await tasks._attach(uid, created=True)
        row = await tasks._row(id)
        if row is not None:
            task = await tasks._attach(row.uid, created=False)
            await _check_same(tasks._store, task, function)
            return task


async def _check_same(store: Store, task: Task, function: DurableFunction[..., Any]) -> None:
    rows = await store.query("get_call", uid=task.uid)
    if not rows or rows[0][0] != function.name:
        what = f"carries out {rows[0][0]!r}" if rows else "is no durable function's"
        raise Conflict(f"task {task.id!r} {what}, not {function.name!r}", do="choose another id")


async def run_here(tasks: Tasks, id: str, function: DurableFunction[..., Any], args: Any, kwargs: Any) -> Any:
    """Carry the task on in this process until it has ended, and give its result."""
    task = await start(tasks, id, function, args, kwargs)
    while True:
        record = await task.record()
        if record.is_finished:
            return await result_of(tasks, task, function)
        if record.is_paused:
            await Nap(_LOOK_SECONDS)
            continue
        try:
            hold = await leases.take(tasks._store, task.id, task.uid, record.agent, is_exclusive=True)
        except (LeaseHeld, InvalidTransition):
            await Nap(_LOOK_SECONDS)
            continue
        await one_pass(tasks, task, hold, function)


async def result_of(tasks: Tasks, task: Task, function: DurableFunction[..., Any]) -> Any:
    store = tasks._store
    rows = await store.query("get_task_by_uid", uid=task.uid)
    row = rows[0]
    status, result, error = row[4], row[19], row[20]
    if status == "completed":
        return store.unseal(task.uid, "result", result, function.signature.returns)
    found = store.unseal(task.uid, "error", error) if error else None
    if isinstance(found, dict) and isinstance(found.get("raised"), bytes):
        raise decode_error(found["raised"], ())
    raise TaskFailed(task.id, status, "completed", found)


# ── one pass ─────────────────────────────────────────────────────────────────────────────────────


async def one_pass(tasks: Tasks, task: Task, hold: Any, function: DurableFunction[..., Any]) -> None:
    """One attempt: from the journal's beginning to the function's end or its next pause."""
    store, loop = tasks._store, asyncio.get_running_loop()
    try:
        run = await _prepare(store, task, hold, loop)
        args, kwargs = await _arguments(store, task, function)
    except BaseException:
        await leases.release(store, hold, "could not begin")
        raise
    scopes.install(loop)
    context = copy_context()
    context.run(scopes.current.set, run.main)
    body = loop.create_task(_body(function, args, kwargs), context=context)
    try:
        value = await body
        missed = run.cursor.end()
        if missed is not None and not run.unwinding:
            raise run.diverged(missed)
    except BaseException as error:
        await _ended_otherwise(task, hold, run, error)
    else:
        await _ended(task, hold, run, function, value)


async def _body(function: DurableFunction[..., Any], args: Any, kwargs: Any) -> Any:
    return await function.function(*args, **kwargs)


async def _prepare(store: Store, task: Task, hold: Any, loop: asyncio.AbstractEventLoop) -> Run:
    rows = await store.query("get_task_by_uid", uid=task.uid)
    line = rows[0][6]
    entries: list[tuple[int, Entry]] = []
    for position, sealed in await store.query("read_journal", uid=task.uid, line=line):
        payload = envelope.unseal(sealed, kind="entry", bound_to=task.uid, ring=store.ring)
        entries.append((position, decode_entry(payload)))
    answers = {
        path: store.unseal(task.uid, "answer", answer)
        for path, _, _, _, _, answer, _, _ in await store.query("read_pauses", uid=task.uid)
        if answer is not None
    }
    return Run(store, hold.fence, line, entries, answers, loop=loop)


async def _arguments(store: Store, task: Task, function: DurableFunction[..., Any]) -> Any:
    rows = await store.query("get_call", uid=task.uid)
    sealed = rows[0][2]
    data = envelope.unseal(sealed, kind="arguments", bound_to=task.uid, ring=store.ring)
    return function.signature.decode_arguments(data)


async def _ended(task: Task, hold: Any, run: Run, function: DurableFunction[..., Any], value: Any) -> None:
    run.fence.check()
    sealed = run.store.seal(task.uid, "result", value, function.signature.returns)
    saved = {"replayed": run.replayed, "fresh": run.fresh}
    await moves.move(task, "complete", hold=hold, ended="completed", data=saved, result=sealed)


async def _ended_otherwise(task: Task, hold: Any, run: Run, error: BaseException) -> None:
    """Paused, diverged, overtaken, interrupted, or failed."""
    closed = run.fence.closed
    if isinstance(closed, ReplayDiverged) or isinstance(error, ReplayDiverged):
        found = closed if isinstance(closed, ReplayDiverged) else error
        await _pause_diverged(task, hold, run, found)
        raise found
    if closed is not None:
        leases.forget(run.store, hold)
        raise closed from error
    if run.unwinding or isinstance(error, Paused):
        await _suspend(task, hold, run)
        return
    if not isinstance(error, Exception):
        await leases.release(run.store, hold, f"interrupted: {type(error).__name__}")
        raise error
    shape: dict[str, Any] = {"message": str(error)[:500] or type(error).__name__, "type": type(error).__name__}
    shape["raised"] = encode_error(error, ())
    sealed = run.store.seal(task.uid, "error", shape)
    await moves.move(task, "fail", hold=hold, ended="failed", data={"message": shape["message"]}, error=sealed)
    raise error


async def _pause_diverged(task: Task, hold: Any, run: Run, error: BaseException) -> None:
    run.fence.closed = None
    message = error.what if isinstance(error, PerdureError) else str(error)
    await task.pause(message, reason="human_input", diverged=True)


async def _suspend(task: Task, hold: Any, run: Run) -> None:
    """The task waits for its open questions, unless one was answered while the attempt was unwound."""
    store = run.store
    await run.flush()
    reason, question, due_at = next(iter(run.questions.values()))
    now = store.clock.now_ms()
    pause = make_pause(reason, str(question["question"]), {}, now, json.loads(store.presence.author()))
    params = {
        **task._event("paused", {"reason": reason, "message": pause.message}),
        "pause": store.seal(task.uid, "pause", pause, Pause),
        "pause_reason": reason,
        "due_at": due_at,
        "paths": json.dumps(list(run.questions)),
    }
    row = await store.verb("suspend", task.uid, params, key=task.id, fence=hold.fence)
    if row is None:
        await leases.release(store, hold, "answered while it was unwound")
    else:
        leases.forget(store, hold)
