"""Fork a durable function's task: make a new task that has already done what another had done up to some step.

    source    a ── b ── c ── d ── e
    fork           at c: a, b, c are copied, and the function continues from there in a task of its own

A fork copies the calls that had ended by then. Copied effects stay done: they are not repeated, and they still belong
to the source, so ending the fork does not undo them. An effect that was under way is not copied; the fork runs its own,
under its own key. Children, signals and questions stay with the source too: only their results are copied.

A task whose journal is damaged cannot continue. A fork before the damage can. Effects after that place are copied as
intents, and settled when the function reaches them, with whatever the journal still says about them.

Owns the choice of what is copied, which is pure, and its write into the store, which is one write.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from shlex import quote
from typing import Any

import msgspec

from perdure._durable.attempt import unrecorded, with_appended
from perdure._durable.declare import DurableFunction, function_for
from perdure._durable.effects import KNOWN, UNDO, accounts
from perdure._durable.inspect import read_functions
from perdure._durable.journal import read_readable, without_failed
from perdure._durable.lifecycle.attach_check import begun_in
from perdure._durable.models import carried, seal_budget
from perdure._durable.progress import rebased, recorded_later, state_at, state_place
from perdure._ground.encoding import codec
from perdure._ground.ids import check_id
from perdure._ground.secrets import envelope
from perdure._model import AFTER, Budget, Entry, misfits, name_of, scope_of, seal_entry, seq_of
from perdure._store import CallRow, Store
from perdure._tasks import Once, Task, causes_of, current_row, insert_task, read_checkpoint, store_of, tasks_of
from perdure.errors import AlreadyExists, Conflict, InvalidInput, JournalDamaged, NotFound, PerdureError, TooLarge

Entries = Sequence[tuple[int, Entry]]
log = logging.getLogger("perdure.durable")
_OF_AN_INTENT = ("key", "tries", "number", "not_after")
_UNKNOWN = (
    "entry %d of task %s cannot be read. If it was the beginning of an effect, no other entry tells of it, "
    "and %s would run that effect again: check whether it happened"
)
# The limit for all copied entries together, as stored.
MAX_COPIED = 256 * 1024 * 1024


async def fork(
    task: Task, new_id: str, at: str | None, changes: Mapping[str, Any], once: Once | None = None
) -> Task | None:
    """A new task that continues after the step `at`, or after the last one; None for a task without durable function.

    Raises:
        NotFound, InvalidInput: there is no such step or argument; nothing was written.
        AlreadyExists: the id is in use; nothing was written.
        JournalDamaged: an entry cannot be read, and `at` names no place before it; nothing was written.
    """
    store = store_of(task)
    source_call = await store.row(CallRow, "get_call", uid=task.uid)
    if source_call is None:
        return None
    check_id(new_id)
    function, version, sealed = source_call.function, source_call.version, source_call.arguments
    row = await current_row(store, task.id, task.uid)
    readable = await read_readable(store, task.uid, row.line)
    entries = await without_failed(store, task.uid, readable.entries)
    upto = place_of(task, entries, at)
    refuse_damaged(task.id, readable.damaged, upto if at is not None else None)
    refuse_undone(task.id, entries, upto)
    source, seq = (task.uid, row.state_seq) if at is None else state_place(task.uid, entries, upto)
    kept = copied(entries, upto, task.uid, recorded_later(source, entries, upto, seq))
    if at is None and (appended := unrecorded(await causes_of(task), entries, row.line)):
        kept.append((upto + 1, with_appended(carried(()), appended)))
    if readable.damaged:
        log.warning(_UNKNOWN, readable.damaged[0][0], task.id, new_id)
        kept += unsettled(entries, upto, task.uid)
    state = await state_of(store, source, seq)
    arguments = envelope.unseal(sealed, kind="arguments", bound_to=task.uid, ring=store.ring)
    module = await begun_in(store, task.uid)
    known = function_for(function, version, module)
    takes = await schema_of_arguments(store, function, version) if changes and known is None else None
    arguments, state = changed(known, function, arguments, state, changes, takes)
    # Always a budget, even without limits: a worker assumes that a task without one has nothing on record yet.
    limit: Budget = store.unseal(task.uid, "budget", source_call.budget, Budget) if source_call.budget else Budget()

    def call(uid: str) -> dict[str, Any]:
        return {
            "function": function,
            "function_version": version,
            "arguments": envelope.seal(arguments, kind="arguments", bound_to=uid, ring=store.ring),
            "queue": source_call.queue,
            "priority": source_call.priority,
            "parent_uid": None,
            "call_key": "",
            "not_before": None,
            "deadline_at": None,
            "budget": seal_budget(store, uid, limit),
            "entries": packed(store, uid, rebased(kept, seq if source == task.uid else None)),
        }

    made = await insert_task(
        tasks_of(task),
        "fork_function",
        new_id,
        state,
        cause="fork",
        origin={"forked_from": task.id, "uid": task.uid, "position": upto, "module": module},
        name=row.name,
        description=row.description,
        agent=row.agent,
        tags=json.loads(row.tags),
        config=(await task.record()).config,
        call=call,
        once=once,
    )
    if made is None:
        raise AlreadyExists(new_id, "in use")
    return made


async def state_of(store: Store, uid: str, seq: int) -> Any:
    """The state in a checkpoint that a fork can begin with."""
    found = await read_checkpoint(store, uid, seq)
    if found is None:
        raise Conflict(f"checkpoint {seq} was set aside as invalid", do="fork at another step")
    return found["state"]


# ── which step ───────────────────────────────────────────────────────────────────────────────────


def place_of(task: Task, entries: Entries, at: str | None) -> int:
    """The position of the step, given by number, path, name, or the checkpoint made there."""
    last = entries[-1][0] if entries else 0
    if at is None:
        return last
    at = str(at)
    if at.isdecimal():
        if int(at) > last:
            raise NotFound("step", at, store_of(task).place, do=f"the last step of {task.id!r} is {last}")
        return int(at)
    seq = seq_of(task.uid, at)
    ended = [(position, entry) for position, entry in entries if entry.kind != "intent"]
    if seq is not None:
        found = [position for position, entry in ended if state_at(task.uid, [entry]) == seq]
    else:
        found = [position for position, entry in ended if at in (entry.path, entry.path.removeprefix("|"))]
        if not found:
            found = _by_name(task.id, ended, at)
    if not found:
        listed = f"`perdure journal {quote(task.id)}` lists the steps"
        raise NotFound("step", at, store_of(task).place, do=listed)
    return found[-1]


def _by_name(task_id: str, ended: Entries, name: str) -> list[int]:
    places = {entry.path: position for position, entry in ended if name_of(entry.path) == name}
    if len(places) > 1:
        which = ", ".join(f"{path.removeprefix('|')} ({position})" for path, position in places.items())
        raise InvalidInput(f"task {task_id!r} has {len(places)} steps {name!r}", do=f"choose one: {which[:300]}")
    return list(places.values())


def refuse_undone(task_id: str, entries: Entries, upto: int) -> None:
    """An effect that was undone cannot be copied as done."""
    undone = {scope_of(entry.path) for _, entry in entries if _is_undo(entry) and entry.kind == "result"}
    for position, entry in entries:
        if position <= upto and entry.kind == "result" and entry.path in undone:
            raise InvalidInput(
                f"{name_of(entry.path)} at {position} was undone in task {task_id!r}",
                do=f"fork at a step before it: --at {max(position - 2, 0)}",
            )


def refuse_damaged(task_id: str, damaged: Sequence[tuple[int, str]], upto: int | None) -> None:
    """A task can only continue from before an entry that cannot be read, and only if the caller names that place.

    Raises:
        JournalDamaged: the place is not before the entry, or was not named; nothing was written.
    """
    if damaged and (upto is None or upto >= damaged[0][0]):
        raise JournalDamaged(task_id, *damaged[0])


# ── what is copied ───────────────────────────────────────────────────────────────────────────────


def _is_undo(entry: Entry) -> bool:
    return entry.op.partition(".")[0] == UNDO


def copied(entries: Entries, upto: int, source: str, later: Collection[int] = ()) -> list[tuple[int, Entry]]:
    """The entries of everything that had ended at this position, as the fork's own, and those at `later`. Pure."""
    before = settled_by(entries, upto, later)
    # Attempts of another task get negative numbers, which no attempt of the fork has.
    epochs = {epoch: -number for number, epoch in enumerate(sorted({entry.epoch for _, entry in before}), 1)}
    kept = []
    for position, entry in before:
        note = {**(entry.note or {}), "from": source} if entry.op.startswith("effect") else entry.note
        kept.append((position, msgspec.structs.replace(entry, epoch=epochs[entry.epoch], note=note)))
    return kept


def unsettled(entries: Entries, upto: int, source: str) -> list[tuple[int, Entry]]:
    """Effects that had not ended at this position, or began later, as intents without an outcome. The source cannot
    continue, so the fork settles them instead of running them again. A result that is known is kept. Pure."""
    found = []
    for account in accounts(entries, {}):
        had_ended = account.end is not None and account.position <= upto
        if had_ended or account.state in ("failed", "undone"):
            continue
        last = account.intent  # or the outcome, when the intent cannot be read
        note = {**{name: account.note[name] for name in _OF_AN_INTENT if name in account.note}, "from": source}
        note["shown"] = account.shown
        if account.state == "done" and account.end is not None and account.end.value is not None:
            note[KNOWN] = base64.b64encode(account.end.value).decode()
        kept = last.value if last.kind == "intent" else None
        intent = msgspec.structs.replace(last, kind="intent", value=kept, error=None, epoch=-1, note=note)
        found.append((account.position, intent))
    return sorted(found, key=lambda one: one[0])


def settled_by(entries: Entries, upto: int, later: Collection[int] = ()) -> list[tuple[int, Entry]]:
    """The entries up to this position and at `later`, without calls still open there and without undoing. Pure."""
    before = [(position, entry) for position, entry in entries if position <= upto or position in later]
    ended = {entry.path for _, entry in before if entry.kind != "intent"}
    return [
        (position, entry)
        for position, entry in before
        if (entry.kind != "intent" or entry.path in ended) and not _is_undo(entry) and entry.op != "compensate"
    ]


def packed(store: Store, uid: str, entries: Entries) -> str:
    """Entries in the format the store writes together with another row: sealed for their task, all or none. Positions
    have gaps, so each entry names the one before it.

    Raises:
        TooLarge: nothing was written.
    """
    ring, before, pairs = store.ring, 0, []
    for position, entry in sorted(entries, key=itemgetter(0)):
        named = msgspec.structs.replace(entry, note={**(entry.note or {}), AFTER: before})
        pairs.append((position, seal_entry(named, uid, position, ring).hex()))
        before = position
    size = sum(len(digits) // 2 for _, digits in pairs)
    if size > MAX_COPIED:
        raise TooLarge("the copied journal", size, MAX_COPIED)
    return json.dumps(pairs)


# ── what is changed ──────────────────────────────────────────────────────────────────────────────


async def schema_of_arguments(store: Store, function: str, version: int) -> Mapping[str, Any] | None:
    """JSON Schema of what the function takes, as live workers say; None if none of them knows it."""
    found = [one.arguments for one in await read_functions(store) if (one.name, one.version) == (function, version)]
    return next((schema for schema in found if schema is not None), None)


def changed(
    known: DurableFunction[..., Any] | None,
    function: str,
    data: bytes,
    state: Any,
    changes: Mapping[str, Any],
    takes: Mapping[str, Any] | None = None,
) -> tuple[bytes, Any]:
    """Arguments and state with some values changed. A name that is not an argument is a key of the state. `takes` is
    the JSON Schema of the arguments that workers announce, for a function that this process does not know."""
    if not changes:
        return data, state
    given = dict(codec.decode(data))
    announced: Mapping[str, Any] = (takes or {}).get("properties") or {}
    types = dict(known.signature.types) if known is not None else dict.fromkeys([*given, *announced], Any)
    keys = dict(state) if isinstance(state, dict) else {}
    for name, value in changes.items():
        if name in types:
            given[name] = _as_argument(name, value, types[name])
            if known is None and takes is not None and name in announced:
                _require_fit(name, given[name], takes)
        elif name in keys:
            keys[name] = value
        else:
            names = ", ".join([*types, *keys]) or "nothing"
            do = f"these can be set: {names}"
            if known is None:
                do += f"; in a program that imports {function}, task.fork(…) can set any of its arguments"
            what = f"{function} has no argument and no state {name!r}"
            raise InvalidInput(what, do=do, errors=[{"path": [name], "message": "it is not there to be set"}])
    return codec.encode(given), keys if isinstance(state, dict) else state


def _require_fit(name: str, data: bytes, takes: Mapping[str, Any]) -> None:
    """Refuse a value of plain data that the workers' schema of the arguments does not allow."""
    if not codec.is_plain(data):
        return
    if found := misfits({name: codec.decode(data)}, {**takes, "required": []}):
        raise InvalidInput(
            f"{name} cannot be changed so: {found[0]}",
            do="give a value of its own type",
            errors=[{"path": list(misfit.path), "message": misfit.message} for misfit in found],
        )


def _as_argument(name: str, value: Any, as_type: Any) -> bytes:
    """Encodes a value of the argument's type, or plain data that can be read as one."""
    data = codec.encode(value, as_type)
    if as_type is Any or codec.is_plain(data):
        return data
    try:
        return codec.encode(codec.decode(codec.encode(value), as_type), as_type)
    except PerdureError as error:
        raise InvalidInput(
            f"{name} cannot be {value!r}: {error.what}",
            do="give a value of its own type",
            errors=[{"path": [name], "message": error.what}],
        ) from None
