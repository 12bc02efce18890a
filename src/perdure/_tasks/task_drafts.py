"""Begin many tasks alike: the first one's row is the draft of the others.

A row has some forty columns, and two tasks that begin with one call of a function differ in five. There is no draft
where more differs: with a key, every payload is sealed for its task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from perdure._ground.ids import new_uid
from perdure._ground.secrets import envelope
from perdure._model import digest
from perdure._store import Write
from perdure._tasks.state import Snapshot
from perdure._tasks.task import Task, TaskHome

MOST = 64  # of one app; functions with options of the moment would make one each


class Draft(Struct):
    """The common columns of tasks that carry out one function, begin without a state, and run in this process."""

    columns: Mapping[str, Any]
    body: bytes  # of their first event, as its digest takes it
    snapshot: Snapshot
    size: int  # without the arguments


def keep(
    tasks: TaskHome, alike: object, columns: Mapping[str, Any], body: bytes, snapshot: Snapshot, size: int
) -> None:
    """Have later tasks that are `alike` begin as this one did."""
    if tasks._store.ring.current is None:
        if len(tasks._drafts) >= MOST:
            tasks._drafts.clear()
        size -= len(columns["arguments"])
        tasks._drafts[alike] = Draft({**columns, "arguments": b""}, body, snapshot, size)


def draft_of(tasks: TaskHome, alike: object) -> Draft | None:
    """The draft, if there is one that is still valid; None if no earlier task is alike."""
    draft = tasks._drafts.get(alike)
    return draft if isinstance(draft, Draft) and tasks._store.presence.is_registered else None


def begin(tasks: TaskHome, draft: Draft, id: str, arguments: bytes) -> tuple[str, Write]:
    """The uid of a new task by the draft, and the write that makes it and takes its lease (`leases.taking`)."""
    store, columns = tasks._store, draft.columns
    at = store.clock.now_ms()
    uid = new_uid(at)
    sealed = envelope.seal(arguments, "arguments", uid, store.ring)
    author = store.presence.author(columns["agent"])
    told = digest(uid, columns["kind"], at, author, draft.body)
    params = {**columns, "uid": uid, "id": id, "at": at, "author": author, "digest": told, "arguments": sealed}
    write = Write(store.committer, "start_function", params, f"{store.namespace}\0{id}", draft.size + len(sealed))
    return uid, write


def begun(tasks: TaskHome, draft: Draft, id: str, uid: str) -> Task:
    """That task, once it is written. (If the handle were made sooner, the garbage collector would have to look through
    thousands of waiting handles.)"""
    return Task(tasks, (id, uid, "running"), {}, draft.snapshot)
