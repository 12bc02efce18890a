"""Checkpoints inside a durable function: the next attempt begins at the last one and replays what followed.

    state = await checkpoint.last(Import())        # the state saved last; the first time, this one
    while state.page < pages:
        await read(state.page)
        state.page += 1
        await checkpoint.save(state)

A save is a journal entry that names the checkpoint and how often each call had been made by then. So later calls get
the same numbers whether the attempt was replayed or began here. The journal before it stays: the ledger, the budget
and the savings are read from all of it. If a checkpoint can no longer be read, the one before it, or the whole
journal, leads to the same place.

Owns what a save records and where an attempt begins. The checkpoints themselves belong to the task (perdure/_tasks).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from perdure._durable.attempt import Attempt, Point, Saved, Scope, current, recorded_call
from perdure._ground.encoding import codec
from perdure._model import Entry, name_of, scope_of, seq_of
from perdure._store import Store
from perdure._tasks import put_checkpoint, read_checkpoint, read_own_state
from perdure.errors import InvalidInput, NotFound, RecordDamaged

T = TypeVar("T")

_NAME = "checkpoint.save"
APPEND = "state.append"
# The number of a save whose checkpoint belongs to another task: an attempt cannot begin there.
_NOWHERE = -1


async def last(first: T) -> T:
    """The state that was saved last, as the type of `first`; `first` if there is none. Call it before any step."""
    scope = current.get()
    if scope is None:
        return first
    _refuse_in_body(scope, "checkpoint.last")
    scope.attempt.asks_last = True
    point: Point | None = scope.attempt.point
    found: T = codec.round_trip(first, type(first))[1]
    if point is not None:
        found = codec.decode(codec.encode(point.state), type(first))
    return found


async def save(state: Any, *, label: str = "") -> None:
    """Make `state` the task's state. The next attempt begins here if the function has called `checkpoint.last`, and
    replays from the start if not. Without a task nothing is stored.

    Keys that others have set meanwhile stay; of a key that both have set, this state's value counts.

    Raises:
        InvalidInput: other asyncio tasks of the function still run; a state cannot describe where they are.
        NotStorable, TooLarge: nothing was written.
    """
    scope = current.get()
    if scope is None:
        return
    _refuse_in_body(scope, _NAME)
    attempt, task = scope.attempt, scope.attempt.task
    if scope is not attempt.main or attempt.activity.has_tasks or task is None:
        raise InvalidInput(
            "checkpoint.save is called while other asyncio tasks of the function still run",
            kept="the checkpoint before it",
            do="await them first, and save in the function itself",
        )

    async def keep() -> Saved:
        calls, scopes = attempt.main.numbers()
        await attempt.part(_StateRead).own_state()
        made = await put_checkpoint(task, state, label=label, keep="given")
        return Saved(made.seq, calls, scopes, attempt.asks_last)

    await recorded_call(scope, _NAME, Saved, keep)


class _StateRead:
    """The task state that the code of one attempt has read."""

    def __init__(self, attempt: Attempt) -> None:
        self._task = attempt.task
        self._is_known = attempt.epoch == 1

    async def own_state(self) -> None:
        """Before the first save of a later attempt: its code knows only what earlier ones have saved."""
        if not self._is_known:
            assert self._task is not None
            await read_own_state(self._task)
            self._is_known = True


def _refuse_in_body(scope: Scope, name: str) -> None:
    if scope.is_body:
        raise InvalidInput(f"{name} is called inside a step", do="call it between steps")
    scope.attempt.check()


# ── where an attempt begins ──────────────────────────────────────────────────────────────────────


async def resume_point(store: Store, uid: str, entries: Sequence[tuple[int, Entry]]) -> Point | None:
    """The newest save whose checkpoint can be read; None: replay the whole journal."""
    for position, entry in reversed(entries):
        saved = _saved(entry)
        if saved is None or saved.seq == _NOWHERE or not saved.is_begun_at:
            continue
        try:
            found = await read_checkpoint(store, uid, saved.seq)
        except (NotFound, RecordDamaged):
            continue
        if found is not None:
            return Point(position, saved, found["state"])
    return None


def begin_at(attempt: Attempt, point: Point) -> None:
    """Number the calls of this attempt as if it had made those before the save."""
    attempt.main.begin_at(point.saved.calls, point.saved.scopes)


def _saved(entry: Entry) -> Saved | None:
    if scope_of(entry.path) or name_of(entry.path) != _NAME or entry.kind != "result" or entry.value is None:
        return None
    found: Saved = codec.decode(entry.value, Saved)
    return found


# ── for forks and rollbacks ──────────────────────────────────────────────────────────────────────


def state_at(uid: str, entries: Sequence[Entry]) -> int:
    """The number of the newest checkpoint in these entries; 0 for the first state."""
    return max(filter(None, (_checkpoint_of(uid, entry) for entry in entries)), default=0)


def state_place(uid: str, entries: Sequence[tuple[int, Entry]], upto: int) -> tuple[str, int]:
    """The newest checkpoint at this position, and the task it belongs to. The first state of a fork contains everything
    that was copied; earlier states belong to its source."""
    inherited = [(position, entry) for position, entry in entries if entry.epoch < 0]
    if inherited and upto < inherited[-1][0]:
        told = [(position, *made) for position, entry in inherited if (made := _id_in(entry)) is not None]
        before = [(source, seq) for position, source, seq in told if position <= upto]
        if before:
            source = before[-1][0]
            return source, max(seq for other, seq in before if other == source)
        if told:
            return told[0][1], 0
    return uid, state_at(uid, [entry for position, entry in entries if position <= upto])


def position_of(uid: str, entries: Sequence[tuple[int, Entry]], seq: int) -> int:
    """The journal's position at checkpoint `seq`, or at the last one before it that the function made itself.

    Scopes may record their checkpoints in another order than they made them. No entry of a later one is kept. If a
    call recorded its part of `seq` only after a later one was recorded, all entries before that later one are kept:
    what led to the call is among them, in its own scope or in one that it waited for.
    """
    made = [(position, found) for position, entry in entries if (found := _checkpoint_of(uid, entry))]
    first_later = min((position for position, found in made if found > seq), default=math.inf)
    if any(found <= seq and position > first_later for position, found in made):
        return max((position for position, _ in entries if position < first_later), default=0)
    inherited = max((position for position, entry in entries if entry.epoch < 0), default=0)  # of a fork's first state
    return max((position for position, found in made if found <= seq and position < first_later), default=inherited)


def recorded_later(uid: str, entries: Sequence[tuple[int, Entry]], position: int, seq: int) -> set[int]:
    """Later positions of calls that are part of checkpoint `seq` all the same: a scope had made its checkpoint by then,
    but not recorded it yet. Everything that led to it is recorded up to `position`. A save is never among
    them, because only one scope runs at a save."""
    found = ((at, _id_in(entry)) for at, entry in entries if at > position)
    return {at for at, made in found if made is not None and made[0] == uid and made[1] <= seq}


def _checkpoint_of(uid: str, entry: Entry) -> int | None:
    """The checkpoint in an entry: of a save, of a span's end, or of an append."""
    saved = _saved(entry)
    if saved is not None:
        return None if saved.seq == _NOWHERE else saved.seq
    made = _id_in(entry)
    return made[1] if made is not None and made[0] == uid else None


def _id_in(entry: Entry) -> tuple[str, int] | None:
    """The task and number of the checkpoint that the end of a span, or an append, has recorded."""
    name = name_of(entry.path)
    if not (name.startswith("span ") or name == APPEND) or entry.op != "child" or entry.value is None:
        return None
    found = codec.decode(entry.value)
    uid = found.rpartition(".")[0] if isinstance(found, str) else ""  # appends of older versions recorded no id
    seq = seq_of(uid, found) if uid else None
    return None if seq is None else (uid, seq)


def rebased(entries: Sequence[tuple[int, Entry]], seq: int | None) -> list[tuple[int, Entry]]:
    """The entries for a task whose first state is checkpoint `seq` of the source; None if it is another task's."""
    return [(position, _rebased(entry, seq)) for position, entry in entries]


def _rebased(entry: Entry, seq: int | None) -> Entry:
    saved = _saved(entry)
    if saved is None:
        return entry
    now = msgspec.structs.replace(saved, seq=0 if saved.seq == seq else _NOWHERE)
    return msgspec.structs.replace(entry, value=codec.encode(now, Saved))
