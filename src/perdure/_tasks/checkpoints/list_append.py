"""Add to a list in a task's state, without writing the rest of the state again: `task.append`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure._ground.encoding import codec
from perdure._ground.encoding import deltas as frames
from perdure._ground.encoding import list_splice as splicing
from perdure._model import Checkpoint, checkpoint_id, merge
from perdure._tasks.checkpoints import checkpoint_write as checkpointing
from perdure._tasks.checkpoints.checkpoint_write import Made
from perdure._tasks.core import TaskCore
from perdure._tasks.once import once_of
from perdure._tasks.state import Snapshot, snapshots, unseen_changes
from perdure._tasks.task_walk import outline
from perdure.errors import InvalidInput, NotStorable, TooLarge

_CAUSE = "append"


async def append(
    task: TaskCore,
    path: str | Sequence[str | int],
    item: object,
    *,
    label: str = "",
    cause: str = _CAUSE,
    once: str | None = None,
) -> Checkpoint:
    """The checkpoint with the item at the end of the list.

    Raises:
        InvalidInput: at the path is something else than a list; nothing was written.
        NotStorable, TooLarge: nothing was written.
        LeaseHeld, LeaseLost, InvalidTransition: as a checkpoint does.
    """
    keys = splicing.path_of(path)
    if not path:
        raise InvalidInput("the path to the list is empty", do='name its key: task.append("messages", item)')
    try:
        data, copy = codec.round_trip(item)
    except NotStorable as error:
        where = f"{_shown(keys)}[]" + (f".{error.path}" if error.path else "")
        raise NotStorable(where, error.problem, do=error.do) from None

    behind: tuple[Snapshot, Any] | None = None  # what the code had read and made of it, if others wrote since

    def make(before: Snapshot) -> Made:
        nonlocal behind
        behind = None if before.raw is task._read.raw else (task._read, task.state)
        known = task.state if behind is None else snapshots.contents(before.raw)["state"]
        state = _with_item(known, keys, copy, keys)
        return _spliced(task, before, keys, data, state) or _written_anew(task, before, state)

    asked = once_of(once, "append", list(keys), label, data)
    made = await checkpointing.store_made(task, make, label=label, cause=cause, once=asked)
    if behind is not None:  # what the code has changed in its copy and not saved yet stays in it
        read, working = behind
        task.state = merge(snapshots.contents(read.raw)["state"], task.state, working, keep="given")
    return made


def _with_item(state: object, left: splicing.Path, item: object, keys: splicing.Path) -> Any:
    """The state with the item, sharing with the old one whatever the path does not touch."""
    if not left:
        if state is _NOTHING:
            return [item]
        if type(state) is not list:
            raise InvalidInput(
                f"at {_shown(keys)!r} is not a list but a {type(state).__name__}", kept="the state as it was"
            )
        return [*state, item]
    if state is _NOTHING or state is None:
        state = {}
    if type(state) is dict:
        return {**state, left[0]: _with_item(state.get(left[0], _NOTHING), left[1:], item, keys)}
    if type(state) is list and type(left[0]) is int and 0 <= left[0] < len(state):
        inner = _with_item(state[left[0]], left[1:], item, keys)
        return [*state[: left[0]], inner, *state[left[0] + 1 :]]
    raise InvalidInput(f"{_shown(keys)!r} leads through a {type(state).__name__}", kept="the state as it was")


_NOTHING = object()


def _spliced(task: TaskCore, before: Snapshot, keys: splicing.Path, item: bytes, state: object) -> Made | None:
    """The list made longer in the bytes; None where it is not there, or other parts must not be carried along."""
    raw, path = before.raw, ("state", *keys)
    is_tagged = not codec.is_plain(raw)
    place = before.places.get(path)
    if place is None:
        if splicing.size_of(raw, is_tagged) > 1 and not set(snapshots.contents(raw)) <= set(unseen_changes.OWN):
            return None
        place = splicing.find_list(raw, path, is_tagged)
    if place is None:
        return None
    is_item_plain = codec.is_plain(item)
    edits, now = splicing.append(place, item if is_item_plain else item[1:])
    shift = 0
    if not is_item_plain and not is_tagged:  # plain data reads the same in the other form, which has a mark
        shift = 1
        edits.insert(0, splicing.Edit(0, 0, codec.TAGGED))
        now = now._replace(at=now.at + 1, end=now.end + 1)
    current, change, crc = frames.splice(raw, edits)
    if len(current) > snapshots.MAX_STATE:
        raise TooLarge("the state", len(current), snapshots.MAX_STATE)
    frame = snapshots.build_from(task._store, task.uid, current, before, change)
    others = {name: one for name, one in before.places.items() if name != path}
    places = {**splicing.moved(others, place, now, shift), path: now}
    return Made(snapshots.with_places(frame, places), current, {**_companions(before), "state": state}, crc)


def _companions(before: Snapshot) -> dict[str, Any]:
    """The parts beside the state. Usually there are none, and nothing is read."""
    if splicing.size_of(before.raw, not codec.is_plain(before.raw)) == 1:
        return {}
    found = snapshots.contents(before.raw)
    return {name: found[name] for name in unseen_changes.OWN if name in found}


def _written_anew(task: TaskCore, before: Snapshot, state: object) -> Made:
    """A whole checkpoint: the list begins here, or is in a place where it cannot be extended."""
    raw, copy = codec.round_trip({**_companions(before), "state": state})
    if len(raw) > snapshots.MAX_STATE:
        raise TooLarge("the state", len(raw), snapshots.MAX_STATE)
    return Made(snapshots.build(task._store, task.uid, raw, before), raw, copy)


def _shown(keys: splicing.Path) -> str:
    return ".".join(map(str, keys))


async def causes_of(task: TaskCore) -> dict[str, str]:
    """The causes and ids of the checkpoints that led to the task's state."""
    rows = await outline(task._store, task.uid)
    return {row.cause: checkpoint_id(task.uid, row.seq) for row in rows if not row.superseded}
