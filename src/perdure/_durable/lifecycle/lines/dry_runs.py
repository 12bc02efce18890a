"""What a cancel, a rollback or a fork of a durable function's task would do. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure._durable.declare import function_for
from perdure._durable.effects import Account, accounts
from perdure._durable.inspect import shown_arguments
from perdure._durable.journal import read_answers, read_entries, read_readable, without_failed
from perdure._durable.lifecycle.attach_check import begun_in
from perdure._durable.lifecycle.lines.task_fork import (
    changed,
    place_of,
    refuse_damaged,
    refuse_undone,
    schema_of_arguments,
    state_of,
)
from perdure._durable.lifecycle.lines.task_rollback import plan_rollback
from perdure._durable.progress import state_place
from perdure._ground.secrets import envelope
from perdure._model import FINISHED, ChildAtStake, DryRun, EffectAtStake, ForkPlan
from perdure._store import CallRow, ChildRow
from perdure._tasks import Task, current_row, fork_columns, store_of


async def rehearse(task: Task, seq: int | None, undo: bool) -> DryRun:
    """What would happen to the effects since this checkpoint, or to all of them, and which children are open.

    Raises:
        JournalDamaged: the effects cannot be told.
    """
    store = store_of(task)
    started = await store.rows(ChildRow, "children_of", uid=task.uid)
    children = [ChildAtStake(id=one.id, status=one.status) for one in started if one.status not in FINISHED]
    if not await store.query("get_call", uid=task.uid):
        return DryRun(children=children)
    row = await current_row(store, task.id, task.uid)
    entries = await read_entries(store, task.uid, row.line)
    answers = await read_answers(store, task.uid)
    if seq is None:
        known = accounts(entries, answers)
    else:
        known = (await plan_rollback(store, task.uid, row.line, entries, answers, seq)).since
    since = [one for one in known if not one.is_inherited]
    done = [one for one in since if one.state == "done"]
    back = [one for one in done if undo and one.has_undo]
    return DryRun(
        undone=[_told(one) for one in sorted(back, key=lambda one: one.position, reverse=True)],
        kept=[_told(one) for one in done if one not in back],
        uncertain=[_told(one) for one in since if one.state == "uncertain"],
        children=children,
    )


async def rehearse_fork(task: Task, at: str | None, changes: Mapping[str, Any]) -> ForkPlan:
    """What a fork after this step would begin with, which effects it would take over as done, and which it would run
    on its own: those that were under way then.

    Raises:
        NotFound, InvalidInput: there is no such step, checkpoint or argument.
        JournalDamaged: an entry cannot be read, and `at` names no place before it.
    """
    store = store_of(task)
    row = await current_row(store, task.id, task.uid)
    call = await store.row(CallRow, "get_call", uid=task.uid)
    if call is None:
        return ForkPlan(state=(await fork_columns(task, at, changes))["state"])
    function, version, sealed = call.function, call.version, call.arguments
    readable = await read_readable(store, task.uid, row.line)
    entries = await without_failed(store, task.uid, readable.entries)
    upto = place_of(task, entries, at)
    refuse_damaged(task.id, readable.damaged, upto if at is not None else None)
    refuse_undone(task.id, entries, upto)
    uid, seq = (task.uid, row.state_seq) if at is None else state_place(task.uid, entries, upto)
    state = await state_of(store, uid, seq)
    takes = await schema_of_arguments(store, function, version)
    given = envelope.unseal(sealed, kind="arguments", bound_to=task.uid, ring=store.ring)
    known = function_for(function, version, await begun_in(store, task.uid))
    changed(known, function, given, state, changes, takes)
    known_effects = accounts([one for one in entries if one[0] <= upto], await read_answers(store, task.uid))
    arguments = shown_arguments(store, task.uid, sealed)
    return ForkPlan(
        kept=[_told(one) for one in known_effects if one.state == "done"],
        uncertain=[_told(one) for one in known_effects if one.state == "uncertain"],
        arguments=arguments if isinstance(arguments, dict) else {},
        takes=takes,
        state=state,
    )


def _told(account: Account) -> EffectAtStake:
    return EffectAtStake(
        name=account.name,
        call=account.shown,
        key=account.key,
        path=account.path.removeprefix("|"),
        has_undo=account.has_undo,
    )
