"""Text that arrives in pieces, each kept as it arrives. `perdure.stream` writes one; these read what was kept.

The same as perdure.streams, without await. Written by tools/make_sync.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from perdure import streams as _streams
from perdure._durable import HasTasks, each_of, waited
from perdure._ground.bridge import inner_of
from perdure._store import Store
from perdure._tasks import Task, Tasks
from perdure.streams import Marker, Prefix, StreamPart, TaskAccount
from perdure.sync._calls import Stream

__all__ = [
    "Marker",
    "Prefix",
    "Stream",
    "StreamPart",
    "TaskAccount",
    "account_of",
    "follow_stream",
    "read_stream",
    "stored_bytes",
]


def account_of(app: HasTasks | Tasks | Store, task_id: str | Task) -> TaskAccount:
    """The cost and savings of a task, for `perdure where` and `perdure show`.

    `saved` of a finished task is what its last attempt did not repeat, which is nothing if it had one attempt; of any
    other task, what the next attempt will not repeat.
    """
    return waited(_streams.account_of(inner_of(app), inner_of(task_id)))


def stored_bytes(app: HasTasks | Tasks | Store, task_id: str) -> int:
    """The size of a task's journal in bytes, as stored."""
    return waited(_streams.stored_bytes(inner_of(app), task_id))


def follow_stream(
    app: HasTasks | Tasks | Store, task_id: str | Task, name: str, *, after: int = 0, number: int | None = None
) -> Iterator[StreamPart]:
    """Each part beyond `after` as it is written, by whichever process, until the stream or the task ends.

    To continue after an interruption, pass the last part's offset: nothing is left out and nothing is repeated.

    Raises:
        NotFound: no such task.
        Conflict: the task was rolled back, and with it the text that was read.
    """
    return each_of(_streams.follow_stream(inner_of(app), inner_of(task_id), name, after=after, number=number))


def read_stream(
    app: HasTasks | Tasks | Store, task_id: str | Task, name: str, *, after: int = 0, number: int | None = None
) -> StreamPart:
    """The new pieces of a stream after `after`. With `number`, the nth stream of that name; without, the latest.

    Raises:
        NotFound: no such task, or no such stream in it.
        InvalidInput: a negative offset, or a number below 1.
    """
    return waited(_streams.read_stream(inner_of(app), inner_of(task_id), name, after=after, number=number))
