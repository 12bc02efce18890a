"""Checkpoints inside a durable function: the next attempt goes on from the last one, and replays only what followed.

    state = await checkpoint.last(Import())        # as it was saved last; the first time, this
    while state.page < pages:
        await read(state.page)
        state.page += 1
        await checkpoint.save(state)

A save is an entry of the journal that names the checkpoint and how often each call had been made by then, so
that calls after it are numbered alike, whether the attempt came by replay or began here. The journal before it
stays: the ledger, the budget and the savings are read from all of it, and a checkpoint that cannot be read
any more is no loss, as the one before it, or the whole journal, leads to the same place.

Owns what a save records and where an attempt begins. The checkpoints themselves are a task's (perdure/_tasks).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from perdure._durable.run import Run
from perdure._durable.scopes import Scope, current
from perdure._durable.starting import recorded_call
from perdure._ground import codec
from perdure._model import Entry, name_of, scope_of, seq_of
from perdure._store import Store
from perdure._tasks import put_checkpoint, read_checkpoint
from perdure.errors import InvalidInput, NotFound, RecordDamaged

T = TypeVar("T")

_NAME = "checkpoint.save"
# A save whose checkpoint is another task's: of no use to begin with.
_NOWHERE = -1


class Saved(msgspec.Struct, array_like=True, frozen=True):
    """What a save records: the checkpoint's number, and the calls and scopes of the main line so far, by name."""

    seq: int
    calls: dict[str, int]
    scopes: dict[str, int]


class Point(Struct, frozen=True):
    """Where an attempt begins."""

    position: int
    saved: Saved
    state: Any


class checkpoint:
    """Inside a durable function: begin where the last checkpoint was, instead of replaying from the start."""

    @staticmethod
    async def last(first: T) -> T:
        """The state that was saved last, as the type of `first`; `first` while none was. Call it before any step."""
        scope = current.get()
        if scope is None:
            return first
        _refuse_in_body(scope, "checkpoint.last")
        point: Point | None = scope.run.point
        found: T = codec.round_trip(first, type(first))[1]
        if point is not None:
            found = codec.decode(codec.encode(point.state), type(first))
        return found

    @staticmethod
    async def save(state: Any, *, label: str = "") -> None:
        """Make `state` the task's state; the next attempt begins here. Without a task nothing is kept.

        Keys that others have set meanwhile stay; of a key that both have set, this state's value counts.

        Raises:
            InvalidInput: other tasks of the function are under way, whose place a state cannot tell.
            NotStorable, TooLarge: nothing was written.
        """
        scope = current.get()
        if scope is None:
            return
        _refuse_in_body(scope, _NAME)
        run, task = scope.run, scope.run.task
        if scope is not run.main or run.scopes > 1 or task is None:
            raise InvalidInput(
                "checkpoint.save is called while other tasks of the function are under way",
                kept="the checkpoint before it",
                do="await them first, and save in the function itself",
            )

        async def keep() -> Saved:
            calls, scopes = run.main.numbers()
            made = await put_checkpoint(task, state, label=label, keep="given")
            return Saved(made.seq, calls, scopes)

        await recorded_call(scope, _NAME, Saved, keep)


def _refuse_in_body(scope: Scope, name: str) -> None:
    if scope.is_body:
        raise InvalidInput(f"{name} is called inside a step", do="call it between steps")
    scope.run.check()


# ── where an attempt begins ──────────────────────────────────────────────────────────────────────


async def resume_point(store: Store, uid: str, entries: Sequence[tuple[int, Entry]]) -> Point | None:
    """The newest save whose checkpoint can be read; None: the whole journal is replayed."""
    for position, entry in reversed(entries):
        saved = _saved(entry)
        if saved is None or saved.seq == _NOWHERE:
            continue
        try:
            found = await read_checkpoint(store, uid, saved.seq)
        except (NotFound, RecordDamaged):
            continue
        if found is not None:
            return Point(position, saved, found["state"])
    return None


def begin_at(run: Run, point: Point) -> None:
    """Number the calls of this attempt as if it had made those before the save."""
    run.main.begin_at(point.saved.calls, point.saved.scopes)


def _saved(entry: Entry) -> Saved | None:
    if scope_of(entry.path) or name_of(entry.path) != _NAME or entry.kind != "result" or entry.value is None:
        return None
    found: Saved = codec.decode(entry.value, Saved)
    return found


# ── for a fork ───────────────────────────────────────────────────────────────────────────────────


def state_at(uid: str, entries: Sequence[Entry]) -> int:
    """The number of the checkpoint that was the newest when the last of these was recorded; 0 for the first state."""
    found = (_checkpoint_of(uid, entry) for entry in reversed(entries))
    return next((seq for seq in found if seq is not None), 0)


def position_of(uid: str, entries: Sequence[tuple[int, Entry]], seq: int) -> int:
    """Where the journal stood when checkpoint `seq` was made, or the one before it that the function made itself."""
    made = [(position, _checkpoint_of(uid, entry)) for position, entry in entries]
    return max((position for position, found in made if found is not None and 0 < found <= seq), default=0)


def _checkpoint_of(uid: str, entry: Entry) -> int | None:
    """The checkpoint that an entry tells of: a save, or the end of a span."""
    saved = _saved(entry)
    if saved is not None:
        return saved.seq
    if name_of(entry.path).startswith("span ") and entry.op == "child" and entry.value is not None:
        return seq_of(uid, codec.decode(entry.value, str))
    return None


def rebased(entries: Sequence[tuple[int, Entry]], seq: int) -> list[tuple[int, Entry]]:
    """The same entries for a task whose first state is checkpoint `seq` of the one they come from."""
    return [(position, _rebased(entry, seq)) for position, entry in entries]


def _rebased(entry: Entry, seq: int) -> Entry:
    saved = _saved(entry)
    if saved is None:
        return entry
    now = msgspec.structs.replace(saved, seq=0 if saved.seq == seq else _NOWHERE)
    return msgspec.structs.replace(entry, value=codec.encode(now, Saved))
