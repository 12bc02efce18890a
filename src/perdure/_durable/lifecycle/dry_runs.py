"""What cancelling a durable function's task, or rolling it back, would do to the world. Nothing is changed."""

from __future__ import annotations

from perdure._durable.effects import Account, accounts
from perdure._durable.journal import read_answers, read_entries
from perdure._durable.progress import position_of
from perdure._model import FINISHED, ChildAtStake, DryRun, EffectAtStake
from perdure._tasks import Task, current_row, store_of


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


def _told(account: Account) -> EffectAtStake:
    return EffectAtStake(
        name=account.name,
        call=account.shown,
        key=account.key,
        path=account.path.removeprefix("|"),
        has_undo=account.has_undo,
    )
