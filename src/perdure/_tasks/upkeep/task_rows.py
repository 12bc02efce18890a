"""The rows of a task as they travel to another store: one closed type for each table. Pure.

Rows from outside are untrusted until they have passed `read_rows`: every column is present, has its type and is in its
range, all rows belong to one task, and no checkpoint builds on a later one. Unknown columns are refused.

transfer.py chooses the rows; payloads are checked where they are opened.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from perdure._model import Reason, Status

# Moments up to the end of the year 9999, which is the last that Python can tell.
_LAST_MS = 253_402_300_799_999
Uid = Annotated[str, Meta(pattern=r"\A[0-9a-v]{24}\Z")]
Id = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\A[^\x00-\x1f\x7f]+\Z")]
Text = Annotated[str, Meta(pattern=r"\A[^\x00]*\Z")]  # PostgreSQL holds no NUL
Blob = Annotated[str, Meta(pattern=r"\A\\x[0-9a-f]*\Z")]
Hash = Annotated[str, Meta(pattern=r"\A\\x[0-9a-f]{64}\Z")]
Moment = Annotated[int, Meta(ge=0, le=_LAST_MS)]
Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Number = Annotated[int, Meta(ge=-(1 << 53), le=1 << 53)]
Flag = Literal[0, 1]


class _Row(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """A row with all its columns and no others."""


class TaskColumns(_Row, frozen=True, gc=False):
    uid: Uid
    namespace: Id
    id: Id
    is_current: Flag
    status: Status
    version: Count
    line: Count
    seq: Count
    state_seq: Count
    name: Text
    description: Text
    agent: Text
    tags: Text
    config: Blob | None
    depends_on: Text
    pause_reason: Reason | None
    pause: Blob | None
    due_at: Moment | None
    progress: Blob | None
    result: Blob | None
    error: Blob | None
    attempts: Count
    event_count: Count
    event_head: Hash
    created_at: Moment
    started_at: Moment | None
    updated_at: Moment
    finished_at: Moment | None
    archived_at: Moment | None


class CheckpointColumns(_Row, frozen=True, gc=False):
    task_uid: Uid
    seq: Count
    line: Count
    parent: Count | None
    base: Count | None
    at: Moment
    label: Text
    cause: Text
    depth: Count
    author: Text
    size: Count
    stored: Count
    chain_size: Count
    chain_length: Count
    position: Count
    valid: Flag
    superseded: Flag
    pinned: Flag
    chunks: Count
    frame: Blob


class ChunkColumns(_Row, frozen=True, gc=False):
    task_uid: Uid
    owner: Uid
    n: Count
    body: Blob


class AttemptColumns(_Row, frozen=True, gc=False):
    task_uid: Uid
    number: Count
    worker: Text
    host: Text
    pid: Count
    user: Text
    agent: Text
    started_at: Moment
    ended_at: Moment | None
    ended: Text


class EventColumns(_Row, frozen=True, gc=False):
    task_uid: Uid
    number: Count
    at: Moment
    kind: Text
    author: Text
    body: Blob
    digest: Hash
    hash: Hash


class EntryColumns(_Row, frozen=True, gc=False):
    task_uid: Uid
    line: Count
    position: Count
    entry: Blob


class CallColumns(_Row, frozen=True, gc=False):
    task_uid: Uid
    function: Text
    version: Number
    arguments: Blob
    queue: Text
    priority: Number
    parent_uid: Uid | None
    budget: Blob | None
    key: Text
    not_before: Moment | None
    deadline_at: Moment | None
    losses: Count
    lost_position: Number


class PauseColumns(_Row, frozen=True, gc=False):
    task_uid: Uid
    path: Text
    reason: Text
    topic: Text | None
    question: Blob
    asked_at: Moment
    due_at: Moment | None
    answer: Blob | None
    answered_at: Moment | None
    answered_by: Text | None
    expires_at: Moment | None = None  # a bundle of an earlier store has none


class SignalColumns(_Row, frozen=True, gc=False):
    task_uid: Uid
    name: Text
    number: Count
    value: Blob
    sent_at: Moment
    sent_by: Text
    taken_by: Text | None
    once: Text | None


class ShelfColumns(_Row, frozen=True, gc=False):
    owner: Uid
    kind: Text
    key: Text
    version: Count
    due_at: Moment | None
    changed_at: Moment
    author: Text
    value: Blob


class DeliveryColumns(_Row, frozen=True, gc=False):
    task_uid: Uid
    handler: Text
    delivered: Count


class LeaseColumns(_Row, frozen=True, gc=False):
    task_uid: Uid
    epoch: Count
    worker: Text | None
    taken_at: Moment | None


class MemoryColumns(_Row, frozen=True, gc=False):
    namespace: Id
    life: Literal[""] | Uid
    key: Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"\A[^\x00]+\Z")]
    owner: Id
    version: Count
    at: Moment
    expires_at: Moment | None
    value: Blob


class TaskRows(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """All rows of one task, by table."""

    tasks: Annotated[list[TaskColumns], Meta(min_length=1, max_length=1)]
    checkpoints: list[CheckpointColumns] = []
    chunks: list[ChunkColumns] = []
    attempts: list[AttemptColumns] = []
    events: list[EventColumns] = []
    journal: list[EntryColumns] = []
    calls: Annotated[list[CallColumns], Meta(max_length=1)] = []
    pauses: list[PauseColumns] = []
    signals: list[SignalColumns] = []
    shelf: list[ShelfColumns] = []
    deliveries: list[DeliveryColumns] = []
    leases: Annotated[list[LeaseColumns], Meta(max_length=1)] = []
    memory: list[MemoryColumns] = []


class Departure(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The state of a task before it left, as its last event says."""

    status: Status
    pause_reason: Reason | None
    pause: bytes | None
    due_at: Moment | None
    error: bytes | None
    finished_at: Moment | None


_decoder = msgspec.msgpack.Decoder(TaskRows)


def read_rows(data: bytes, *, uid: str, id: str, namespace: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of this very task, as another store gave them.

    Raises:
        ValueError: they are not rows of a task, or of another one; says which.
    """
    try:
        rows = _decoder.decode(data)
    except RecursionError:
        raise ValueError("they are nested too deeply") from None
    task = rows.tasks[0]
    if (task.uid, task.id, task.namespace) != (uid, id, namespace):
        raise ValueError("they belong to another task than the header says")
    told = {name: [msgspec.structs.asdict(row) for row in getattr(rows, name)] for name in rows.__struct_fields__}
    owners = {
        row["owner" if name == "shelf" else "task_uid"]
        for name, table in told.items()
        for row in table
        if name not in ("tasks", "memory")
    }
    owners_of_memory = {(row.owner, row.namespace) for row in rows.memory}
    if not owners <= {uid} or not owners_of_memory <= {(id, namespace)}:
        raise ValueError("they belong to another task than the header says")
    _check_task(rows, task)
    return told


def _check_task(rows: TaskRows, task: TaskColumns) -> None:
    """Check the values with a form inside a text, and those that could lead a reader in a circle."""
    _read_json(task.tags, dict[str, str], "tags")
    _read_json(task.depends_on, list[Any], "depends_on")
    authors = {row.author for row in rows.checkpoints} | {row.author for row in rows.events}
    for author in authors | {row.author for row in rows.shelf}:
        _read_json(author, dict[str, Any], "author")
    known = {row.seq for row in rows.checkpoints}
    if len(known) != len(rows.checkpoints):
        raise ValueError("a checkpoint is there twice")
    for row in rows.checkpoints:
        if any(before is not None and before >= row.seq > 0 for before in (row.parent, row.base)):
            raise ValueError(f"checkpoint {row.seq} builds on a later one")
        if row.seq == 0 and row.base is not None:
            raise ValueError("the first state builds on another")


def _read_json(text: str, as_type: object, what: str) -> None:
    try:
        msgspec.json.decode(text, type=as_type)
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what}: {error}") from None
