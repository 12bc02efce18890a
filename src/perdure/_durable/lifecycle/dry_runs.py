"""What cancelling a durable function's task, rolling it back or forking it would do. Nothing is changed."""

from __future__ import annotations

from perdure._durable.effects import Account, accounts
from perdure._durable.journal import read_answers, read_entries, read_readable, without_failed
from perdure._durable.lifecycle.task_fork import place_of, refuse_damaged, refuse_undone
from perdure._durable.progress import position_of
from perdure._model import FINISHED, ChildAtStake, DryRun, EffectAtStake
from perdure._tasks import Task, current_row, require_checkpoint, store_of


async def rehearse(task: Task, seq: int | None, undo: bool) -> DryRun:
    """What would happen to the effects since this checkpoint, or to all of them, and which children are open.

    Raises:
        JournalDamaged: the effects cannot be told.
    """
    store = store_of(task)
    found = await store.query("children_of", uid=task.uid)
    children = [ChildAtStake(id=id, status=status) for _, id, status in found if status not in FINISHED]
    if not await store.query("get_call", uid=task.uid):
        return DryRun(children=children)
    row = await current_row(store, task.id, task.uid)
    entries = await read_entries(store, task.uid, row.line)
    after = position_of(task.uid, entries, seq) if seq is not None else 0
    known = accounts(entries, await read_answers(store, task.uid))
    since = [one for one in known if one.position > after and not one.is_inherited]
    done = [one for one in since if one.state == "done"]
    back = [one for one in done if undo and one.has_undo]
    return DryRun(
        undone=[_told(one) for one in sorted(back, key=lambda one: one.position, reverse=True)],
        kept=[_told(one) for one in done if one not in back],
        uncertain=[_told(one) for one in since if one.state == "uncertain"],
        children=children,
    )


async def rehearse_fork(task: Task, at: str | None) -> DryRun:
    """Which effects a fork after this step would take over as done, and which it would run on its own: those that were
    under way then.

    Raises:
        NotFound, InvalidInput: there is no such step or checkpoint.
        JournalDamaged: an entry cannot be read, and `at` names no place before it.
    """
    store = store_of(task)
    if not await store.query("get_call", uid=task.uid):
        if at is not None:
            await require_checkpoint(task, at)
        return DryRun()
    row = await current_row(store, task.id, task.uid)
    readable = await read_readable(store, task.uid, row.line)
    entries = await without_failed(store, task.uid, readable.entries)
    upto = place_of(task, entries, at)
    refuse_damaged(task.id, readable.damaged, upto if at is not None else None)
    refuse_undone(task.id, entries, upto)
    before = [one for one in entries if one[0] <= upto]
    known = accounts(before, await read_answers(store, task.uid))
    return DryRun(
        kept=[_told(one) for one in known if one.state == "done"],
        uncertain=[_told(one) for one in known if one.state == "uncertain"],
    )


def _told(account: Account) -> EffectAtStake:
    return EffectAtStake(
        name=account.name,
        call=account.shown,
        key=account.key,
        path=account.path.removeprefix("|"),
        has_undo=account.has_undo,
    )
