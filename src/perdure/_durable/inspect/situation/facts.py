"""The facts that decide a task's situation: plain data, without I/O.

fact_reader.py reads it from the store, rows.py decides from it, and `without_data` leaves out what agents wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from perdure._model import HeldBy, LastError, Pause, Policy, Progress, Status, WaitKind


class LiveWorker(NamedTuple):
    """The functions and commands a live worker has announced."""

    queues: Sequence[str]
    functions: Sequence[Sequence[Any]]  # name, version, whether it upgrades older versions
    commands: bool = True  # whether it runs commands of stored pauses; older versions do not announce it
    host: str = ""
    pid: int = 0

    def knows(self, name: str, version: int) -> bool:
        return any(
            known == name and (of == version or (upgrades and of > version)) for known, of, upgrades in self.functions
        )


class OpenQuestion(Struct, frozen=True, kw_only=True):
    """A question of a durable function that has no answer yet."""

    path: str
    kind: WaitKind
    text: str = ""  # "" if the reader may not see it
    topic: str = ""  # the signal or task it waits for
    since: datetime | None = None
    due_at: datetime | None = None
    expires_at: datetime | None = None
    otherwise: str = ""  # what happens when it expires: "approve", "reject", "its default"; "" if it fails then
    checks: int = 0
    provider: str = ""
    is_waited_for: bool = True  # the code cannot continue without the answer
    choices: Sequence[str] = ()
    way_on: str = ""  # what ends it, as one sentence


class SwitchFact(Struct, frozen=True, kw_only=True):
    """The kill switch that stops a task."""

    user: str
    why: str = ""
    since: datetime | None = None
    is_for_all: bool = False


class CallFact(Struct, frozen=True, kw_only=True):
    """The innermost call under way."""

    path: str
    since: datetime | None = None


class Uncertain(Struct, frozen=True, kw_only=True):
    """An effect whose outcome is unknown. Its process may run it until then."""

    name: str
    until: datetime | None = None


class Facts(Struct, frozen=True, kw_only=True):
    """One task, at one moment."""

    id: str
    status: Status
    now: datetime
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempts: int = 0
    tells_data: bool = True  # whether text written by agents may be shown
    # its end
    result: str = ""
    error: LastError | None = None
    ended_by: str = ""
    undone: int | None = None  # effects that its cancel has undone
    # its durable function
    function: str | None = None
    line: int = 1  # of its journal
    epoch: int = 0  # of its lease
    version: int = 1
    queue: str = ""
    not_before: datetime | None = None
    calls: int | None = None  # calls on record that will not run again; None where that was not counted
    call: CallFact | None = None
    last_path: str = ""  # of the newest call that has ended
    uncertain: Uncertain | None = None
    ahead: int | None = None  # tasks of its queue that are due before it
    could_not_begin: str | None = None  # why its last attempt did not reach the function
    last_process: str = ""  # of the last attempt: "pid 4711 on vm"
    # what keeps it
    switch: SwitchFact | None = None
    cancel_asked_at: datetime | None = None
    is_cancelling: bool = False
    damaged: str = ""  # what of it cannot be read
    damaged_do: str = ""
    sealed: str = ""  # what of it is sealed with a key that is not here
    pause: Pause | None = None
    pause_kind: WaitKind | None = None
    questions: Sequence[OpenQuestion] = ()
    dependencies: Mapping[str, str | None] = {}
    policy: Policy = "wait"
    awaited: Mapping[str, str | None] = {}  # statuses of tasks that pauses wait for
    # who works
    holder: HeldBy | None = None
    held_since: datetime | None = None
    stalled_seconds: float | None = None
    progress: Progress | None = None
    workers: Sequence[LiveWorker] = ()

    @property
    def is_function(self) -> bool:
        return self.function is not None

    @property
    def at_work(self) -> HeldBy | None:
        """The holder, unless it is dead or was silent for its whole lease."""
        return self.holder if self.holder is not None and self.holder.state != "dead" else None


def without_data(facts: Facts) -> Facts:
    """The same without what agents wrote: questions, messages, results, and what errors say."""
    pause = facts.pause and replace(facts.pause, message="", payload=_plain(facts.pause), details=_marks(facts.pause))
    return replace(
        facts,
        tells_data=False,
        result="",
        error=facts.error and replace(facts.error, message=""),
        could_not_begin="" if facts.could_not_begin is not None else None,
        pause=pause,
        questions=[replace(one, text="") for one in facts.questions],
        progress=facts.progress and replace(facts.progress, cursor=None, others=()),
    )


# Of a pause, these name no more than a kind of wait.
_TOLD_PAYLOAD = ("task", "checks", "provider")
_TOLD_DETAILS = ("diverged", "credential", "tries", "most", "crash_loop")


def _plain(pause: Pause) -> dict[str, Any]:
    told = {name: pause.payload[name] for name in _TOLD_PAYLOAD if name in pause.payload}
    hidden = {name: "" for name in ("url", "command", "file") if name in pause.payload}
    return {**told, **hidden}


def _marks(pause: Pause) -> dict[str, Any]:
    told = {name: pause.details[name] for name in _TOLD_DETAILS if name in pause.details}
    return {**told, "credential": True} if "credential" in told else told
