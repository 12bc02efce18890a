"""The files that a task has recorded as its own, read from its durable state without bringing it to life.

Owns finding them again: it opens each at its recorded place and checks that its bytes are the recorded ones.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from perdure._ground.ids import this_process
from perdure._tasks import Task, store_of
from perdure.errors import PathRefused, RecordDamaged
from perdure.memory.artifacts.task_files import opened
from perdure.memory.storage import AppStorage, owner_prefix
from perdure.memory.task_state_events import from_stored

_BLOCK = 1 << 20
_STATE = "task_state/state"  # where DurableTaskState keeps it, in the part of the task


class RecordedFile(Struct, frozen=True, kw_only=True):
    """A file of a task as it was when it was recorded. `place` and `size` are missing if an older perdure recorded
    it."""

    path: str  # from the folder, with /
    sha256: str
    size: int | None = None
    at: datetime | None = None
    folder: str = ""
    host: str = ""

    @property
    def is_elsewhere(self) -> bool:
        """True when the recorded machine has another name than this one."""
        return self.host != this_process().host

    @classmethod
    async def all_of(cls, task: Task) -> Sequence[RecordedFile]:
        """The files that this task itself has recorded, in order; none when the agent's own serializer wrote the
        state."""
        stored = await AppStorage(store_of(task)).get(f"{owner_prefix('execution', task.id)}{_STATE}")
        try:
            doc = from_stored(stored) if stored is not None else None
        except RecordDamaged:  # written by a serializer of the agent's own
            return []
        if doc is None or doc.uid != task.uid:
            return []
        found = []
        for path in doc.files:
            place = doc.places.get(path)
            about = {} if place is None else {**place._asdict(), "at": datetime.fromisoformat(place.at)}
            found.append(cls(path=path, sha256=doc.hashes.get(path, ""), **about))
        return found

    @contextmanager
    def opened(self) -> Iterator[tuple[int, int]]:
        """The descriptor of the file, at its beginning, and its size. Its bytes were compared with the recorded hash.

        Raises:
            PathRefused: the file was deleted, is behind a link, or has other contents.
        """
        with opened(Path(self.folder), self.path) as descriptor:
            digest, size = hashlib.sha256(), 0
            while block := os.pread(descriptor, _BLOCK, size):
                digest.update(block)
                size += len(block)
            if digest.hexdigest() != self.sha256:
                raise PathRefused(self.path, "its contents differ from those that were recorded")
            yield descriptor, size
