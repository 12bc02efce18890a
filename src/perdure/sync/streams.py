"""Text that arrives in pieces, each kept as it arrives. `perdure.stream` writes one; these read what was kept.

The same as perdure.streams, without await. Written by tools/make_sync.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from perdure import streams as _streams
from perdure._durable import HasTasks, each_of, waited
from perdure._store import Store
from perdure._tasks import Tasks
from perdure.streams import Account, Marker, Prefix, StreamPart
from perdure.sync._calls import Stream, inner_of

__all__ = [
    "Account",
    "Marker",
    "Prefix",
    "Stream",
    "StreamPart",
    "account_of",
    "follow_stream",
    "read_stream",
    "stored_bytes",
]


def account_of(app: HasTasks | Tasks | Store, task_id: str) -> Account:
    """What a task has spent and saved: for `perdure where` and `perdure show`.

    `saved` of a finished task is what its last attempt found done; of any other, what the next one will find.
    """
    return waited(_streams.account_of(inner_of(app), task_id))


def follow_stream(
    app: HasTasks | Tasks | Store, task_id: str, name: str, *, after: int = 0, number: int | None = None
) -> Iterator[StreamPart]:
    """Each stretch beyond `after` as it is written, by whatever process, to the end of the stream or the task.

    Give the last part's offset to go on after an interruption: nothing is left out and nothing comes twice.

    Raises:
        NotFound: no such task.
        Conflict: the task was rolled back, and with it what was read.
    """
    return each_of(_streams.follow_stream(inner_of(app), task_id, name, after=after, number=number))


def read_stream(
    app: HasTasks | Tasks | Store, task_id: str, name: str, *, after: int = 0, number: int | None = None
) -> StreamPart:
    """What a stream has beyond `after`, now. The `number`th of that name; without one, the latest.

    Raises:
        NotFound: no such task, or no such stream in it.
        InvalidInput: an offset or a number that no stream can have.
    """
    return waited(_streams.read_stream(inner_of(app), task_id, name, after=after, number=number))


def stored_bytes(app: HasTasks | Tasks | Store, task_id: str) -> int:
    """How many bytes a task's journal takes, as stored."""
    return waited(_streams.stored_bytes(inner_of(app), task_id))
