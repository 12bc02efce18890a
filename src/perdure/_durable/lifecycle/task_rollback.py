"""Roll a durable function back to a checkpoint: what it did before stays done, and it continues from there.

A new line begins with the journal up to the checkpoint. Effects after it cannot simply be forgotten: either they are
undone first, as when a task is cancelled, or the caller says that they stay as they are.
"""

from __future__ import annotations

import asyncio

from perdure._durable.attempt import Aside, Attempt, Paused, with_origin
from perdure._durable.control import request_rollback
from perdure._durable.effects import Account, accounts, take_back, unknown_here
from perdure._durable.journal import read_answers, read_entries
from perdure._durable.lifecycle.preparation import prepare, suspend
from perdure._durable.lifecycle.task_fork import packed, settled_by
from perdure._durable.models import carried
from perdure._durable.progress import position_of, recorded_later
from perdure._tasks import Hold, LeftToWorker, Task, current_row, forget_lease, release_lease, store_of, take_lease
from perdure.errors import Conflict, InvalidInput


async def keep_for_rollback(task: Task, seq: int, undo: bool | None) -> str | None:
    """The entries to keep, in the store's format; None for a task without a durable function.

    Raises:
        InvalidInput: effects ran after the checkpoint, and `undo` does not say what to do with them.
        LeftToWorker: this process does not know how to undo them; a worker that does goes back.
        LeaseHeld, Conflict: they cannot be undone now; what was undone so far is recorded.
    """
    store = store_of(task)
    if not await store.query("get_call", uid=task.uid):
        return None
    row = await current_row(store, task.id, task.uid)
    entries = await read_entries(store, task.uid, row.line)
    position = position_of(task.uid, entries, seq)
    since = [one for one in accounts(entries, await read_answers(store, task.uid)) if _counts(one, position)]
    if since and undo is None:
        listed = ", ".join(one.shown for one in since)
        raise InvalidInput(
            f"task {task.id!r} has run {len(since)} effects since checkpoint {seq}: {listed[:300]}",
            kept="everything as it is",
            do="choose: undo=True (--undo) undoes them first, undo=False (--keep) leaves them as they are",
        )
    if since and undo:
        await _undo(task, position, seq)
    # Money and tokens stay spent, whatever happens to the work.
    spent = with_origin(carried(entry for at, entry in entries if at > position), entries, row.line)
    later = recorded_later(task.uid, entries, position, seq)
    last = max(later, default=position)
    return packed(store, task.uid, [*settled_by(entries, position, later), (last + 1, spent)])


def _counts(account: Account, position: int) -> bool:
    return account.position > position and account.state in ("done", "uncertain") and not account.is_inherited


async def _undo(task: Task, position: int, seq: int) -> None:
    """Undo the effects in an attempt of our own; no other process may work on the task."""
    if (await task.record()).status in ("paused", "failed"):
        await task.resume()
    hold = await take_lease(store_of(task), task.id, task.uid, "", is_exclusive=True)
    try:
        await Aside(_undo_here(task, hold, position, seq))
    except LeftToWorker:
        raise
    except BaseException:
        forget_lease(store_of(task), hold)  # if the store is unreachable, the lease must not be renewed: it expires
        raise


async def _undo_here(task: Task, hold: Hold, position: int, seq: int) -> None:
    store = store_of(task)
    attempt = await prepare(store, task, hold, asyncio.get_running_loop())
    unknown = unknown_here(attempt, position)
    if unknown:
        # On disk before the lease is free: the worker that claims the task next finds it.
        await request_rollback(task, seq=seq, line=attempt.line)
        await release_lease(store, hold, f"to be rolled back by a process that knows {', '.join(unknown)}")
        raise LeftToWorker
    try:
        await take_back(attempt, position)
    except Paused:
        await suspend(task, hold, attempt)
        raise Conflict(
            f"a person has to help: {next(iter(attempt.unwinding.questions.values()))[1]['question']}",
            kept="the task, paused; what was undone so far is recorded",
            do=f"`perdure answer {task.id}`, then roll back again",
        ) from None
    except BaseException:
        await release_lease(store, hold, "could not undo what it did")
        raise
    await release_lease(store, hold, "undone for a rollback")


async def fulfil_rollback(task: Task, hold: Hold, attempt: Attempt, seq: int) -> None:
    """Undo what the task has done since a checkpoint and go back there, for a process that could not. This process
    holds the lease, and no longer does afterwards."""
    try:
        await take_back(attempt, position_of(task.uid, attempt.entries, seq))
    except Paused:
        await suspend(task, hold, attempt)  # an answer brings the next attempt here again
        return
    # Under the same lease: nobody can continue the old line in between. Effects without an undo stay as they are.
    await task.rollback(str(seq), undo=False)
