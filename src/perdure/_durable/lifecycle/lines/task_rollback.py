"""Roll a durable function back to a checkpoint: everything before it stays done, and the function continues from there.

A new line begins with the journal up to the checkpoint: that of the present line or, for a checkpoint which an earlier
rollback left behind, that of the line it was made on. Effects that the new line does not know cannot simply be
forgotten: they are undone first, as when a task is cancelled, unless the caller keeps them as they are. An effect
before the checkpoint that was undone since is not done any more: the new line begins before it.

A checkpoint from before a `carry_over` or an upgrade is refused: the function has other arguments since, and effects of
earlier lines could be neither listed nor undone. Only the state that the present arguments began with can be gone back
to, if no effect was done between its checkpoint and the end of that line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from perdure._durable.attempt import Aside, Attempt, Paused, lines_before, with_origin
from perdure._durable.control import request_rollback
from perdure._durable.effects import Account, accounts, not_known_to, read_ledger, take_back, unknown_here
from perdure._durable.journal import read_answers, read_entries, read_line, without_failed
from perdure._durable.lifecycle.lines.task_fork import packed, settled_by
from perdure._durable.lifecycle.preparation import prepare, suspend
from perdure._durable.models import carried
from perdure._durable.progress import position_of, recorded_later
from perdure._model import Entry
from perdure._store import CheckpointHead, FrameRow, Store, TaskRow
from perdure._tasks import (
    Hold,
    KeptEntries,
    LeftToWorker,
    Task,
    current_row,
    forget_lease,
    release_lease,
    store_of,
    take_lease,
)
from perdure.errors import Conflict, InvalidInput

_PAGE = 500  # checkpoints read at a time


async def keep_for_rollback(task: Task, seq: int, undo: bool | None) -> KeptEntries | None:
    """The entries to keep; None for a task without a durable function.

    Raises:
        InvalidInput: effects ran after the checkpoint, and `undo` does not say what to do with them; or the checkpoint
            is from before a `carry_over` or an upgrade.
        LeftToWorker: this process does not know how to undo them; a worker that does will roll the task back.
        LeaseHeld, Conflict: they cannot be undone now; the undone ones are recorded.
    """
    store = store_of(task)
    if not await store.query("get_call", uid=task.uid):
        return None
    row = await current_row(store, task.id, task.uid)
    whole = await read_line(store, task.uid, row.line)
    seen = whole[-1][0] if whole else 0
    entries, answers = await without_failed(store, task.uid, whole), await read_answers(store, task.uid)
    plan = await plan_rollback(store, task.uid, row.line, entries, answers, seq)
    since = [one for one in plan.since if one.state in ("done", "uncertain") and not one.is_inherited]
    if since and undo is None:
        listed = ", ".join(one.shown for one in since)
        effects = "1 effect" if len(since) == 1 else f"{len(since)} effects"
        raise InvalidInput(
            f"task {task.id!r} has run {effects} since checkpoint {seq}: {listed[:300]}",
            kept="everything as it is",
            do="choose: undo=True (--undo) undoes them first, undo=False (--keep) leaves them as they are",
        )
    if since and undo:
        seen = await _undo(task, plan, seq)
    return KeptEntries(packed(store, task.uid, plan.kept), seen)


class Plan(NamedTuple):
    """What a rollback does."""

    kept: list[tuple[int, Entry]]  # the entries that the new line begins with
    since: list[Account]  # the effects of the present line that they do not tell of


async def plan_rollback(
    store: Store, uid: str, line: int, entries: Sequence[tuple[int, Entry]], answers: Mapping[str, Any], seq: int
) -> Plan:
    """Plan a rollback of a task on this line, with these entries and answers, to checkpoint `seq`.

    Raises:
        InvalidInput: the checkpoint is from before a `carry_over` or an upgrade.
        JournalDamaged: the line of the checkpoint cannot be read.
    """
    made_on = await _left_line_of(store, uid, seq, [*lines_before(entries), line])
    found = accounts(entries, answers)
    if made_on is None:
        undone = {one.key for one in found if one.state == "undone"}
        kept, upto, later = _kept(uid, entries, seq, undone)
        cost = carried(entry for at, entry in entries if at > upto and at not in later)
    else:
        undone = {one.key for one in await read_ledger(store, uid, line) if one.state == "undone"}
        kept, upto, later = _kept(uid, await read_entries(store, uid, made_on), seq, undone)
        cost = carried((entry for _, entry in entries), without=[entry for _, entry in kept])
    # Money and tokens stay spent, whatever happens to the work.
    spent = max(later, default=upto) + 1, with_origin(cost, entries, line)
    return Plan([*kept, spent], not_known_to(kept, found))


async def _left_line_of(store: Store, uid: str, seq: int, lines: Sequence[int]) -> int | None:
    """The line of a checkpoint that an earlier rollback left behind; None for any other. `lines` are those with the
    present arguments, the present one last.

    Raises:
        InvalidInput: the checkpoint was made with other arguments.
    """
    rows = await store.rows(FrameRow, "read_checkpoints", uid=uid, after=seq - 1, limit=1)
    if not rows or rows[0].seq != seq or rows[0].line == lines[-1]:
        return None
    if rows[0].line not in lines:
        await _require_first_state(store, uid, rows[0], lines[0])
        return None
    return rows[0].line if rows[0].superseded else None


async def _require_first_state(store: Store, uid: str, chosen: FrameRow, begun: int) -> None:
    """Check that the line `begun`, by a `carry_over` or an upgrade, began with this checkpoint, and that no effect was
    done on the line before since."""
    if await _is_first_state(store, uid, chosen.seq, begun):
        ended = await read_entries(store, uid, begun - 1)
        upto = position_of(uid, ended, chosen.seq)
        done_since = not_known_to([one for one in ended if one[0] <= upto], accounts(ended, {}))
        if not done_since:
            return
    raise InvalidInput(
        f"line {begun} of the journal began with new arguments, and checkpoint {chosen.seq} is from before it",
        kept="everything as it is",
        do=f"choose a checkpoint made since; or start a new task with the state of checkpoint {chosen.seq}",
    )


async def _is_first_state(store: Store, uid: str, seq: int, begun: int) -> bool:
    """True if the checkpoint was the task's state when the line `begun` began."""
    after = seq
    while heads := await store.rows(CheckpointHead, "read_checkpoint_heads", uid=uid, after=after, limit=_PAGE):
        if any(one.parent == seq and one.line >= begun for one in heads):
            return True
        after = heads[-1].seq
    row = await store.row(TaskRow, "get_task_by_uid", uid=uid)
    return row is not None and row.state_seq == seq


def _kept(
    uid: str, entries: Sequence[tuple[int, Entry]], seq: int, undone: Collection[str]
) -> tuple[list[tuple[int, Entry]], int, set[int]]:
    """The entries of a line that a checkpoint keeps, up to which position, and at which later positions. `undone` has
    the keys of effects. Pure."""
    upto = position_of(uid, entries, seq)
    taken_back = (one.position for one in accounts(entries, {}) if one.key in undone and one.position <= upto)
    upto = min([upto, *(position - 1 for position in taken_back)])
    later = recorded_later(uid, entries, upto, seq)
    return settled_by(entries, upto, later), upto, later


async def _undo(task: Task, plan: Plan, seq: int) -> int:
    """Undo the effects in an attempt of our own, whose last position is returned; no other process may work on the
    task."""
    if (await task.record()).status in ("paused", "failed"):
        await task.resume()
    hold = await take_lease(store_of(task), task.id, task.uid, "", is_exclusive=True)
    try:
        return await Aside(_undo_here(task, hold, plan, seq))
    except LeftToWorker:
        raise
    except BaseException:
        forget_lease(store_of(task), hold)  # if the store is unreachable, the lease must not be renewed: it expires
        raise


async def _undo_here(task: Task, hold: Hold, plan: Plan, seq: int) -> int:
    store = store_of(task)
    attempt = await prepare(store, task, hold, asyncio.get_running_loop())
    unknown = unknown_here(attempt, plan.kept)
    if unknown:
        # On disk before the lease is free: the worker that claims the task next finds it.
        await request_rollback(task, seq=seq, line=attempt.line)
        await release_lease(store, hold, f"to be rolled back by a process that knows {', '.join(unknown)}")
        raise LeftToWorker
    try:
        await take_back(attempt, plan.kept)
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
    last = attempt.fence.position
    await release_lease(store, hold, "undone for a rollback")
    return last


async def fulfil_rollback(task: Task, hold: Hold, attempt: Attempt, seq: int) -> None:
    """Undo what the task has done since a checkpoint and go back there, for a process that could not. This process
    holds the lease, and no longer does afterwards."""
    try:
        plan = await plan_rollback(attempt.store, task.uid, attempt.line, attempt.entries, attempt.answers, seq)
        await take_back(attempt, plan.kept)
    except Paused:
        await suspend(task, hold, attempt)  # an answer brings the next attempt here again
        return
    # Under the same lease, so that no other attempt continues the old line in between. Effects without an undo stay as
    # they are.
    await task.rollback(str(seq), undo=False)
