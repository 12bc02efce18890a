"""Carry a durable function's task on: claim it, read its journal, run it to its end or its next pause."""

from __future__ import annotations

import asyncio
import inspect
import os
from functools import lru_cache
from traceback import walk_tb
from typing import Any

from msgspec import Struct

from perdure._durable.attempt import (
    Attempt,
    Paused,
    advise_on_fork,
    carry_out,
    is_leaving,
    is_same_again,
    replays_always,
    stand_down,
)
from perdure._durable.control import is_among, is_halted, watch_of, why_drained, why_stopped
from perdure._durable.declare import DurableFunction, function_for
from perdure._durable.lifecycle import failure_policy as failing
from perdure._durable.lifecycle import outcomes as endings
from perdure._durable.lifecycle.line_carry_over import is_carried, next_line
from perdure._durable.lifecycle.preparation import Past, prepare, read_past, suspend
from perdure._durable.lifecycle.run_waits import WaitNotices, stopped
from perdure._durable.lifecycle.stopped_task import Stopped
from perdure._durable.lifecycle.task_start import LOOK_SECONDS, Beginning, check_call, result_of, start
from perdure._durable.lifecycle.upgrades import fitting, meant
from perdure._durable.models import Savings, open_account, savings_of
from perdure._durable.values import recorded_as
from perdure._ground import codec, envelope
from perdure._ground.bridge import Nap
from perdure._ground.signal_handlers import was_raised_by_a_handler
from perdure._ground.traceback_text import trace_of
from perdure._model import FINISHED
from perdure._store import Row, Store, Write, flush_on_sigterm
from perdure._tasks import (
    COULD_NOT_BEGIN,
    Hold,
    Task,
    Tasks,
    agent_of,
    begin_by_draft,
    begun_by_draft,
    blocked_by,
    current_row,
    draft_of,
    explain_refusal,
    forget_lease,
    held_lease,
    release_lease,
    store_of,
    take_lease,
    take_lease_by,
)
from perdure.errors import (
    Conflict,
    InvalidTransition,
    LeaseHeld,
    LeaseLost,
    NotStorable,
    PerdureError,
    ReplayDiverged,
    StoreUnavailable,
    TaskBlocked,
)

_END_BYTES = 500  # size of the write that ends a task, without its result
HALTED = "stopped by the kill switch"
# A pause can last for months: while it lasts, the process looks less and less often, at last every 0.25 s.
LONGEST_LOOK_SECONDS = 0.25
Loop = asyncio.AbstractEventLoop


async def run_until_paused(
    tasks: Tasks, id: str, function: DurableFunction[..., Any], args: Any, kwargs: Any
) -> Stopped[Any]:
    """Carry the task on in this process until it ends or waits without a process. Returns which of the two."""
    found = await run_here(tasks, id, function, args, kwargs, until_paused=True)
    return found if isinstance(found, Stopped) else Stopped(id=id, status="completed", value=found)


async def run_here(
    tasks: Tasks, id: str, function: DurableFunction[..., Any], args: Any, kwargs: Any, *, until_paused: bool = False
) -> Any:
    """Carry the task on in this process until it ends, and return its result. With `until_paused`, return a `Stopped`
    when it pauses."""
    store = store_of(tasks)
    function = check_call(id, function)
    watch = watch_of(store, asyncio.get_running_loop())
    switches = watch.seen()
    while switches is None:
        switches = await watch.switches()
    halted = is_among(switches, id)
    draft = draft_of(tasks, function.alike) if not halted else None
    if draft is not None:
        arguments, copies = function.signature.keep_arguments(args, kwargs)
        uid, write = begin_by_draft(tasks, draft, id, arguments)
        hold = await take_lease_by(store, write, id, uid)
        del write  # else thousands of tasks at work have the garbage collector look through thousands of writes
        if hold is not None:
            task = begun_by_draft(tasks, draft, id, uid)
            ended = await one_pass(tasks, task, hold, function, Beginning(arguments, None, None, copies))
            return ended.value if ended is not None else await _until_its_end(tasks, task, function, until_paused)
    task, beginning = await start(tasks, id, function, args, kwargs, here=not halted, is_taken=draft is not None)
    hold = held_lease(store, task.uid) if task.created else None
    if hold is not None:
        ended = await one_pass(tasks, task, hold, function, beginning)
        if ended is not None:
            return ended.value
    return await _until_its_end(tasks, task, function, until_paused)


async def carry_on_here(tasks: Tasks, task: Task) -> Any:
    """Carry on an existing task in this process until it ends. Returns its function's result, or the task itself.

    Raises:
        Conflict: this process does not know the task's function.
    """
    rows = await store_of(tasks).query("get_call", uid=task.uid)
    if not rows:
        await task.record()
        return task
    function = function_for(rows[0][0], rows[0][1])
    if function is None:
        raise Conflict(
            f"this process does not know {rows[0][0]!r} version {rows[0][1]}, the function of task {task.id!r}",
            do="import the module that declares it",
        )
    function = await meant(store_of(tasks), task.id, task.uid, function)
    return await _until_its_end(tasks, task, function)


async def _until_its_end(
    tasks: Tasks, task: Task, function: DurableFunction[..., Any], until_paused: bool = False
) -> Any:
    with store_of(tasks).bell.listening():
        return await _carried(tasks, task, function, until_paused)


async def _carried(tasks: Tasks, task: Task, function: DurableFunction[..., Any], until_paused: bool) -> Any:
    store, resting = store_of(tasks), LOOK_SECONDS
    notices = WaitNotices(tasks, task, is_quiet=until_paused)
    while True:
        moves = store.bell.moves
        row = await current_row(store, task.id, task.uid)
        if row.status in FINISHED:
            return result_of(store, row, function)
        if row.status == "paused":
            from perdure._tasks import look_after  # imported late: most runs never pause

            await notices.look(row)
            await look_after(tasks, task.uid)
            if until_paused:
                row = await current_row(store, task.id, task.uid)
                if row.status == "paused":
                    return await stopped(store, row)
                continue
            longest = min(resting, store.clock.longest_wait)
            await store.bell.moved_since(moves, longest, unheard=longest, gap=longest / 4)
            resting = min(resting * 1.5, LONGEST_LOOK_SECONDS)
            continue
        if await is_halted(store, task.id):
            notices.tell(notices.why or await why_stopped(store, task.id))
            await Nap(LOOK_SECONDS)
            continue
        try:
            hold = await take_lease(store, task.id, task.uid, "", is_exclusive=True)
        except TaskBlocked as error:
            from perdure._tasks import settle_blocked

            notices.tell(error.what)
            blocked = await blocked_by(store, await current_row(store, task.id, task.uid))
            if await settle_blocked(tasks, blocked) == "wait":
                if until_paused:
                    return Stopped(id=task.id, status="pending", waits_for=error.what)
                await Nap(LOOK_SECONDS)
            continue
        except (LeaseHeld, InvalidTransition) as error:
            if isinstance(error, LeaseHeld) and error.pid != os.getpid():
                notices.tell(error.what)
            await Nap(LOOK_SECONDS)
            continue
        await come_back(tasks, task, hold)
        await one_pass(tasks, task, hold, function)
        resting = LOOK_SECONDS


async def come_back(tasks: Tasks, task: Task, hold: Hold) -> None:
    """Bring back the runtime of a task that was begun before. If that fails, give the lease back.

    Raises:
        Incompatible: the surroundings have changed since the last save; nothing was touched.
        CredentialRefused, RestoreFailed: the runtime could not be brought back; nothing of it is left.
    """
    if hold.fence.epoch > 1 and tasks._returner is not None:
        try:
            await tasks._returner(task, hold.fence.epoch)
        except BaseException as error:
            await release_lease(store_of(tasks), hold, COULD_NOT_BEGIN, error)
            raise


# ── one attempt ──────────────────────────────────────────────────────────────────────────────────


class Returned(Struct):
    """The result of a function, as every caller gets it."""

    value: Any


async def one_pass(
    tasks: Tasks,
    task: Task,
    hold: Hold,
    function: DurableFunction[..., Any],
    beginning: Beginning | None = None,
    past: Past | None = None,
) -> Returned | None:
    """Make one attempt: from the beginning of the journal to the function's end or its next pause.

    With a `beginning` the task was just made and there is nothing to read. A `past` was read under this very lease.
    Returns the function's result if it returned, else None. In every case this process no longer holds the lease
    afterwards. If the store is unreachable and the lease cannot be given back, it is forgotten here and expires.
    """
    # All in one coroutine: every further one is resumed again at each wait of a task.
    store, loop = store_of(tasks), asyncio.get_running_loop()
    watch = watch_of(store, loop)
    flush_on_sigterm()
    before: bytes | None = None
    attempt: Attempt | None = None
    try:
        while True:
            try:
                if beginning is not None:
                    attempt, args, kwargs = _first(store, task, hold, loop, function, beginning)
                    beginning = None
                else:
                    found = await _next(store, task, hold, loop, function, past)
                    past = None
                    if found is None:
                        return None
                    function, attempt, args, kwargs = found
            except ReplayDiverged as error:
                await _pause_diverged(task, error)
                raise
            except BaseException as error:
                await release_lease(store, hold, COULD_NOT_BEGIN, error)
                raise
            attempt.task, attempt.signature = task, function.signature
            attempt.always_replay = replays_always()
            try:
                watch.add(attempt)
                try:
                    value = await carry_out(attempt, function.function, args, kwargs, function.is_async)
                finally:
                    watch.remove(attempt)
                data, copy = _kept_result(function, value)
                sealed = envelope.seal(data, "result", attempt.uid, store.ring)
                is_first_end = before is None
                if attempt.always_replay:
                    before = is_same_again(attempt, before, data)
            except BaseException as error:
                if (
                    attempt.is_restarting
                    and isinstance(error, Paused)
                    and not attempt.stopping
                    and not attempt.draining
                ):
                    await attempt.flush()
                elif is_carried(attempt, error) and not is_cancelled_from_outside(attempt):
                    await next_line(attempt, task, hold, function.signature, function.version)
                else:
                    await _ended_otherwise(task, hold, attempt, function, error)
                    return None
                continue
            if attempt.always_replay and is_first_end:
                await attempt.flush()
                continue
            if hold.at_end is not None:
                hold.at_end()
            while await _completing(task, attempt, sealed) is None:
                if await _is_paused(task, hold, attempt):
                    return None
            task.status = "completed"
            forget_lease(store, hold)
            attempt.fence.let_go()
            return Returned(copy)
    except BaseException as error:
        forget_lease(store, hold)
        if isinstance(error, LeaseLost):
            hold.fence.close(error)
        if attempt is not None:
            stand_down(attempt)
        raise


Ready = tuple[Attempt, tuple[Any, ...], dict[str, Any]]  # an attempt, and the arguments of its function


def _first(
    store: Store, task: Task, hold: Hold, loop: Loop, function: DurableFunction[..., Any], beginning: Beginning
) -> Ready:
    """The first attempt at a task that was just made."""
    attempt = Attempt(store, hold.fence, 1, (), {}, loop)
    open_account(attempt, None, beginning.budget)
    attempt.deadline_at = beginning.deadline_at
    signature, copies = function.signature, beginning.copies
    return attempt, *(signature.decode_arguments(beginning.arguments) if copies is None else signature.spread(copies))


async def _next(
    store: Store, task: Task, hold: Hold, loop: Loop, function: DurableFunction[..., Any], past: Past | None
) -> tuple[DurableFunction[..., Any], *Ready] | None:
    """An attempt that replays the journal, with the version of the function that carries it on. None when the task was
    asked to end, and has ended."""
    past = past or await read_past(store, task.uid)
    function = await fitting(store, task, hold, function, past.call)
    if function.version != past.call[1]:  # it was upgraded, and starts a new line
        past = await read_past(store, task.uid)
    attempt = await prepare(store, task, hold, loop, past)
    attempt.task = task
    if endings.is_ending(attempt, past.signals):
        await endings.end(task, hold, attempt)
        return None
    return function, attempt, *_arguments(store, task, function, attempt, past.call)


def _kept_result(function: DurableFunction[..., Any], value: Any) -> tuple[bytes, Any]:
    kept = function.keep_result(value)
    if kept is not None:
        return kept
    try:
        return codec.round_trip(value, function.signature.returns)
    except NotStorable as problem:
        path = f"result of {function.name}" + (f", {problem.path}" if problem.path else "")
        raise NotStorable(path, problem.problem, do=problem.do, kept="its journal; the task has failed") from None


def _completing(task: Task, attempt: Attempt, sealed: bytes) -> Write:
    """The write that ends the task with this result."""
    store, fence = attempt.store, attempt.fence
    params = store.event(attempt.uid, "completed", _report(attempt), agent_of(task))
    params["uid"], params["epoch"], params["worker"], params["result"] = attempt.uid, fence.epoch, fence.worker, sealed
    return Write(store.committer, "complete_function", params, attempt.key, len(sealed) + _END_BYTES, fence)


async def _is_paused(task: Task, hold: Hold, attempt: Attempt) -> bool:
    """Whether the completion was refused because a caller has paused the task meanwhile. Everything done is recorded;
    the next attempt only has to complete the task."""
    try:
        await explain_refusal(task, "complete", hold)
    except InvalidTransition:
        if task.status != "paused":
            raise
        await release_lease(attempt.store, hold, await why_drained(attempt))
        return True
    return False


def _arguments(store: Store, task: Task, function: DurableFunction[..., Any], attempt: Attempt, call: Row) -> Any:
    sealed, budget, attempt.deadline_at = call[2], call[6], call[9]
    open_account(attempt, budget, function.chosen.budget)
    data = envelope.unseal(sealed, kind="arguments", bound_to=task.uid, ring=store.ring)
    return function.signature.decode_arguments(data)


def _report(attempt: Attempt) -> bytes:
    """What this attempt did, and what it did not have to repeat."""
    if not attempt.entries and not attempt.replayed:
        return _report_of_first(attempt.fresh)
    return _told(attempt.replayed, attempt.fresh, savings_of(entry for _, entry in attempt.entries))


@lru_cache(maxsize=64)
def _report_of_first(fresh: int) -> bytes:
    return _told(0, fresh, Savings())


def _told(replayed: int, fresh: int, saved: Savings) -> bytes:
    return codec.encode_own({"replayed": replayed, "fresh": fresh, "saved": saved.as_event()})


def _is_of(function: DurableFunction[..., Any], error: BaseException) -> bool:
    """Whether the error passed through the function's own code in this thread. An error that a signal handler raises
    there belongs to the function; raised elsewhere, it only interrupts this process."""
    code = getattr(inspect.unwrap(function.function), "__code__", None)
    return any(frame.f_code is code for frame, _ in walk_tb(error.__traceback__))


async def _ended_otherwise(
    task: Task, hold: Hold, attempt: Attempt, function: DurableFunction[..., Any], error: BaseException
) -> None:
    """End an attempt that paused, diverged, lost its lease, was cancelled or interrupted, or failed."""
    closed = attempt.fence.closed
    if isinstance(closed, ReplayDiverged) or isinstance(error, ReplayDiverged):
        found = closed if isinstance(closed, ReplayDiverged) else error
        attempt.fence.closed = None
        await _pause_diverged(task, found)
        raise found
    if closed is not None:
        forget_lease(attempt.store, hold)
        raise closed from error
    is_foreign = was_raised_by_a_handler(error) and not _is_of(function, error)
    if is_foreign or (is_leaving(error) and not isinstance(error, Paused | asyncio.CancelledError)):
        await release_lease(attempt.store, hold, f"interrupted: {type(error).__name__}")
        raise error
    if attempt.halted and not is_cancelled_from_outside(attempt):
        await attempt.flush()
        await release_lease(attempt.store, hold, HALTED)
        return
    if attempt.stopping and not is_cancelled_from_outside(attempt):
        await attempt.flush()
        await endings.end(task, hold, attempt)
        return
    if attempt.draining and not is_cancelled_from_outside(attempt):
        await attempt.flush()
        await release_lease(attempt.store, hold, await why_drained(attempt))
        return
    if attempt.questions and (attempt.unwinding or isinstance(error, Paused)):
        await suspend(task, hold, attempt)
        if is_cancelled_from_outside(attempt):  # while it paused
            raise asyncio.CancelledError
        return
    if is_leaving(error):
        # Paused here means: it was cancelled while it carried over.
        found = asyncio.CancelledError() if isinstance(error, Paused) else error
        await release_lease(attempt.store, hold, f"interrupted: {type(found).__name__}")
        raise found
    if isinstance(error, StoreUnavailable) and recorded_as(error) is None:
        await release_lease(attempt.store, hold, f"interrupted: {type(error).__name__}")
        raise error  # the function has not failed: the store was unreachable
    choice = await failing.choose(task, attempt, error)
    if choice.wait is not None:
        await failing.try_later(task, hold, attempt, choice)
        return
    if choice.pauses:
        await failing.ask(task, hold, attempt, choice)
    elif function.compensate:
        await endings.fail_and_undo(task, hold, attempt, error)
    else:
        await endings.fail(task, hold, attempt, endings.shape_of(error))
    raise error


def is_cancelled_from_outside(attempt: Attempt) -> bool:
    """Whether the asyncio task that makes the attempt was cancelled meanwhile."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > attempt.cancelled


async def _pause_diverged(task: Task, error: BaseException) -> None:
    details: dict[str, Any] = {"diverged": True, "traceback": trace_of(error)}
    if isinstance(error, ReplayDiverged):
        await advise_on_fork(task, error)
        details["advice"] = error.do
    message = error.what if isinstance(error, PerdureError) else str(error)
    await task.pause(message, reason="human_input", **details)
