"""The keys of a thread's rows in `app.storage`. Pure.

    execution/<task>/lg/c/<ns>/<checkpoint id>                 a checkpoint without its channel values
    execution/<task>/lg/v/<ns>/<channel>/<version>             the value of a channel
    execution/<task>/lg/w/<ns>/<checkpoint id>/<task>/<index>  what a task of the graph wrote after a checkpoint

A thread belongs to the task `lg:<thread>`, so that a process that lost the thread's lease writes nothing.
"""

from __future__ import annotations

import hashlib

from perdure._ground.encoding.key_parts import quoted
from perdure._ground.ids import check_id
from perdure.errors import InvalidId
from perdure.memory import owner_prefix

_LONGEST_NAME = 500
_LONGEST = 180  # characters of a thread's id that become part of the task's


def task_id_of(thread: str, prefix: str) -> str:
    """The task of a thread; a thread id that no task could have is replaced by its digest."""
    name = f"{prefix}:{thread}"
    try:
        if len(name) <= _LONGEST:
            check_id(name, "task")
            return name
    except InvalidId:
        pass
    return f"{prefix}:sha256-{hashlib.sha256(thread.encode('utf-8', 'surrogatepass')).hexdigest()}"


def name_of(what: str, place: str, task_id: str) -> str:
    """The name of a part of a thread; of one whose id is a digest, with the place in the graph that it stands for."""
    name = what if place in task_id else f"{what} ({place})"
    return name[:_LONGEST_NAME].encode("utf-8", "replace").decode().replace("\0", "�")


def _part(text: str) -> str:
    """The text as one part of a key; a long one by its digest."""
    safe = quoted(text)
    return safe if len(safe) <= 200 and safe else f"%{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class ThreadKeys:
    """The keys of one thread."""

    def __init__(self, thread: str, prefix: str) -> None:
        self.thread = thread
        self.task_id = task_id_of(thread, prefix)
        self.root = f"{owner_prefix('execution', self.task_id)}lg/"

    def checkpoints(self, ns: str | None = None) -> str:
        """The prefix of the checkpoints' keys, for one namespace or for all."""
        return f"{self.root}c/" if ns is None else f"{self.root}c/{_namespace(ns)}/"

    def checkpoint(self, ns: str, checkpoint_id: str) -> str:
        return self.checkpoints(ns) + _part(checkpoint_id)

    def values(self, ns: str) -> str:
        return f"{self.root}v/{_namespace(ns)}/"

    def versions(self, ns: str, channel: str) -> str:
        return f"{self.values(ns)}{_digest(channel)[:20]}/"

    def value(self, ns: str, channel: str, version: object) -> str:
        return self.versions(ns, channel) + _part(str(version))

    def all_writes(self, ns: str) -> str:
        return f"{self.root}w/{_namespace(ns)}/"

    def writes(self, ns: str, checkpoint_id: str) -> str:
        return f"{self.all_writes(ns)}{_part(checkpoint_id)}/"

    def write(self, ns: str, checkpoint_id: str, task_id: str, index: int) -> str:
        return f"{self.writes(ns, checkpoint_id)}{_part(task_id)}/{index}"


def _namespace(ns: str) -> str:
    return _digest(ns)[:20] if ns else "-"
