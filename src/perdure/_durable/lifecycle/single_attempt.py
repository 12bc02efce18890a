"""Make one attempt at a task: read what is recorded, run the function, and complete the task or let it pause.

Owns an attempt whose function returns. attempt_ends.py handles one that does not.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any

from msgspec import Struct

from perdure._durable.attempt import (
    Attempt,
    Paused,
    carry_out,
    is_same_again,
    replays_always,
    stand_down,
)
from perdure._durable.control import rollback_request, watch_of, why_drained
from perdure._durable.declare import DurableFunction
from perdure._durable.lifecycle.ends import end_attempt, is_cancelled_from_outside, outcomes, pause_diverged
from perdure._durable.lifecycle.lines import fitting_version, fulfil_rollback, is_carried, next_line
from perdure._durable.lifecycle.preparation import Past, prepare, read_past
from perdure._durable.lifecycle.task_start import Beginning
from perdure._durable.models import Savings, open_account, savings_of
from perdure._ground.encoding import codec
from perdure._ground.secrets import envelope
from perdure._store import CallRow, Store, Write, flush_on_sigterm
from perdure._tasks import (
    COULD_NOT_BEGIN,
    Hold,
    Task,
    Tasks,
    agent_of,
    explain_refusal,
    forget_lease,
    hooks_of,
    release_lease,
    store_of,
)
from perdure.errors import (
    InvalidTransition,
    LeaseLost,
    NotStorable,
    ReplayDiverged,
)

_END_BYTES = 500  # size of the write that ends a task, without its result
Loop = asyncio.AbstractEventLoop


async def come_back(tasks: Tasks, task: Task, hold: Hold) -> None:
    """Bring back the runtime of a task that was begun before. If that fails, give the lease back.

    Raises:
        Incompatible: the surroundings have changed since the last save; nothing was touched.
        CredentialRefused, RestoreFailed: the runtime could not be brought back; nothing of it is left.
    """
    if hold.fence.epoch > 1:
        try:
            await hooks_of(tasks).restore(task, hold.fence.epoch)
        except BaseException as error:
            await release_lease(store_of(tasks), hold, COULD_NOT_BEGIN, error)
            raise


class Returned(Struct):
    """The result of a function, as every caller gets it."""

    value: Any


async def make_attempt(
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
                await pause_diverged(task, error)
                raise
            except BaseException as error:
                await release_lease(store, hold, COULD_NOT_BEGIN, error)
                raise
            attempt.task, attempt.signature = task, function.signature
            attempt.always_replay = replays_always()
            try:
                watch.add(attempt)
                hold.attempt = attempt.unwinding
                try:
                    value = await carry_out(attempt, function.function, args, kwargs, function.is_async)
                finally:
                    hold.attempt = None
                    watch.remove(attempt)
                data, copy = _kept_result(function, value)
                sealed = envelope.seal(data, "result", attempt.uid, store.ring)
                is_first_end = before is None
                if attempt.always_replay:
                    before = is_same_again(attempt, before, data)
            except BaseException as error:
                if attempt.unwinding.is_replayed_at_once and isinstance(error, Paused):
                    await attempt.flush()
                elif is_carried(attempt, error) and not is_cancelled_from_outside(attempt):
                    await next_line(attempt, task, hold, function.signature, function.version)
                else:
                    await end_attempt(task, hold, attempt, function, error)
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
    call = past.call
    assert call is not None
    function = await fitting_version(store, task, hold, function, call)
    if function.version != call.version:  # it was upgraded, and starts a new line
        past = await read_past(store, task.uid)
        call = past.call
        assert call is not None
    attempt = await prepare(store, task, hold, loop, past)
    attempt.task = task
    if outcomes.is_ending(attempt, past.signals):
        await outcomes.end(task, hold, attempt)
        return None
    back_to = rollback_request(store, task.uid, past.signals, past.line) if past.signals else None
    if back_to is not None:
        await fulfil_rollback(task, hold, attempt, back_to)
        return None
    return function, attempt, *_arguments(store, task, function, attempt, call)


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
    """True if the completion was refused because a caller has paused the task meanwhile. Everything done is recorded;
    the next attempt only has to complete the task."""
    try:
        await explain_refusal(task, "complete", hold)
    except InvalidTransition:
        if task.status != "paused":
            raise
        await release_lease(attempt.store, hold, await why_drained(attempt))
        return True
    return False


def _arguments(store: Store, task: Task, function: DurableFunction[..., Any], attempt: Attempt, call: CallRow) -> Any:
    attempt.deadline_at = call.deadline_at
    open_account(attempt, call.budget, function.chosen.budget)
    data = envelope.unseal(call.arguments, kind="arguments", bound_to=task.uid, ring=store.ring)
    return function.signature.decode_arguments(data)


def _report(attempt: Attempt) -> bytes:
    """Log what this attempt did, and what it did not have to repeat."""
    if not attempt.entries and not attempt.replayed:
        return _report_of_first(attempt.fresh)
    return _told(attempt.replayed, attempt.fresh, savings_of(entry for _, entry in attempt.entries))


@lru_cache(maxsize=64)
def _report_of_first(fresh: int) -> bytes:
    return _told(0, fresh, Savings())


def _told(replayed: int, fresh: int, saved: Savings) -> bytes:
    return codec.encode_own({"replayed": replayed, "fresh": fresh, "saved": saved.as_event()})
