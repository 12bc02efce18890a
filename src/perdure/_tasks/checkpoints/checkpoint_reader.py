"""`app.checkpoints`: list checkpoints without what they hold, look into one, and compare two.

Works without the code of the classes in a state: their instances are then shown as their fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Any, Literal, get_args

from perdure._ground.clock import moment
from perdure._ground.encoding import codec
from perdure._ground.encoding.codec import stored_json
from perdure._ground.ids import check_id, is_uid
from perdure._model import CheckpointInfo, Diff, Page, Path, checkpoint_id, diff, limited, seq_of, spell_path
from perdure._store import CheckpointHead, Store, TaskRow
from perdure._tasks import records
from perdure._tasks.core import TaskCore
from perdure._tasks.state import snapshots
from perdure._tasks.task_row import current_row, find_row
from perdure.errors import InvalidInput, NotFound

Json = Any
CheckpointPart = Literal["state", "plan", "memory", "partial", "pending"]
NOW = "now"
_LAST = 1 << 62
_NOTHING: Any = object()


class Checkpoints:
    """The checkpoints of tasks. A task is given by its id."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, task: str | TaskCore, *, after: int = 0, limit: int = 100) -> Page[CheckpointInfo]:
        """Checkpoints without their contents, oldest first. The page's cursor is the `after` of the next one.

        Raises:
            NotFound: there is no such task.
            InvalidInput: the limit is not valid.
        """
        if type(limit) is not int or not 1 <= limit <= 1000:
            raise InvalidInput(f"limit is {limit}; it lies between 1 and 1000")
        uid = (await self._row(task)).uid
        asked = {"uid": uid, "after": _number("after", after), "limit": limit + 1}
        rows = await self._store.rows(CheckpointHead, "read_checkpoint_heads", **asked)
        cursor = str(rows[limit - 1].seq) if len(rows) > limit else None
        return Page([_info(uid, row) for row in rows[:limit]], cursor)

    async def get(
        self, task: str | TaskCore, seq: int, *, part: CheckpointPart | None = None, path: Sequence[str | int] = ()
    ) -> Json:
        """The content of a checkpoint: all parts by name, or one of them, or the value that `path` leads to.

        Raises:
            NotFound: there is no such task, checkpoint or path.
            RecordDamaged: the checkpoint cannot be read.
        """
        if part is not None and part not in get_args(CheckpointPart):
            raise InvalidInput(
                f"{part!r} is not a part of a checkpoint", do=f"choose from {', '.join(get_args(CheckpointPart))}"
            )
        if path and part is None:
            raise InvalidInput("a path leads into one part of a checkpoint", do='say which: part="state"')
        row = await self._row(task)
        snapshot, _ = await snapshots.materialise(self._store, row.uid, _number("seq", seq))
        parts = contents_shown(snapshot.raw)
        whole = {name: parts.get(name) for name in get_args(CheckpointPart)}
        return whole if part is None else value_at(whole[part], tuple(path), self._store)

    async def diff(self, task: str | TaskCore, a: str | int, b: str | int = NOW, *, limit: int = 500) -> Diff:
        """The changes in the state from one checkpoint to another; those after the first `limit` are only counted.

        Each of the two is a number, an id (also of another task's checkpoint), or "now".

        Raises:
            NotFound: there is no such task or checkpoint.
            RecordDamaged: one of them cannot be read.
        """
        if type(limit) is not int or not 1 <= limit <= 100_000:
            raise InvalidInput(f"limit is {limit}; it lies between 1 and 100,000")
        row = await self._row(task)
        before, after = await self._state(row, str(a)), await self._state(row, str(b))
        return limited(diff(before, after), limit)

    async def _state(self, row: TaskRow, name: str) -> Json:
        if name == NOW:
            return contents_shown((await records.newest_good(self._store, row))[0].raw)["state"]
        uid = name.rpartition(".")[0]
        if uid and uid != row.uid:
            row = await self._other(uid, name)
        seq = seq_of(row.uid, name)
        if seq is None or seq >= _LAST:
            listed = f"`perdure checkpoints {quote(row.id)}` lists them"
            raise NotFound("checkpoint", name, self._store.place, do=listed)
        return contents_shown((await snapshots.materialise(self._store, row.uid, seq))[0].raw)["state"]

    async def _other(self, uid: str, name: str) -> TaskRow:
        """The task that another task's checkpoint belongs to; one of another namespace does not exist here."""
        row = await self._store.row(TaskRow, "get_task_by_uid", uid=uid) if is_uid(uid) else None
        if row is None or row.namespace != self._store.namespace:
            raise NotFound("checkpoint", name, self._store.place)
        return row

    async def _row(self, task: str | TaskCore) -> TaskRow:
        if isinstance(task, TaskCore):
            return await current_row(self._store, task.id, task.uid)
        row = await find_row(self._store, check_id(task))
        if row is None:
            raise NotFound("task", task, self._store.place)
        return row


def contents_shown(raw: bytes) -> dict[str, Any]:
    """The parts of a snapshot; instances of unknown classes are shown as their fields."""
    try:
        return snapshots.contents(raw)
    except InvalidInput:
        found: dict[str, Any] = codec.peek(raw)
        return found


def _info(uid: str, row: CheckpointHead) -> CheckpointInfo:
    return CheckpointInfo(
        id=checkpoint_id(uid, row.seq),
        seq=row.seq,
        timestamp=moment(row.at),
        label=row.label,
        cause=row.cause,
        depth=row.depth,
        size=row.size,
        stored=row.stored,
        valid=bool(row.valid),
        parent=checkpoint_id(uid, row.parent) if row.parent else None,
        line=row.line,
        superseded=bool(row.superseded),
        pinned=bool(row.pinned),
        author=stored_json(row.author, "an author", dict),
    )


def value_at(value: Json, path: Path, store: Store) -> Json:
    """The part of a value that a path leads to.

    Raises:
        NotFound: it leads to nothing.
    """
    for at, part in enumerate(path):
        value = value.get(part, _NOTHING) if isinstance(value, dict) else _item(value, part)
        if value is _NOTHING:
            raise NotFound("value", spell_path(path[: at + 1]), store.place)
    return value


def _item(value: Json, part: str | int) -> Json:
    is_there = isinstance(value, list | tuple) and isinstance(part, int) and 0 <= part < len(value)
    return value[part] if is_there else _NOTHING


def _number(name: str, number: object) -> int:
    if type(number) is not int or not 0 <= number < _LAST:
        raise InvalidInput(f"{name} is {number!r}; it is a whole number, 0 or more")
    return number
