"""Why a task is, or is not, running: what is said of it, and what a person can do about it.

Owns the records. perdure/_durable/inspect/situation decides them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

from msgspec import Struct, field

SituationKind = Literal[
    "completed",
    "cancelled",
    "failed",
    "stopped",
    "cancelling",
    "stuck",
    "you",
    "waiting",
    "blocked",
    "stalled",
    "working",
    "starting",
    "idle",
]
SITUATIONS: tuple[SituationKind, ...] = get_args(SituationKind)

# The exact case, within its kind.
Cause = Literal[
    "ended",
    "switch",
    "cancel",
    "damaged",
    "sealed",
    "diverged",
    "question",
    "paused",
    "pause",
    "retry",
    "dependencies",
    "dependency_failed",
    "stalled",
    "at_work",
    "silent",
    "no_worker",
    "code",
    "could_not_begin",
    "turn",
    "unattended",
]


class Way(Struct, frozen=True, kw_only=True):
    """Something a person can do about a situation."""

    verb: str  # resume, cancel, fork, approve, …
    label: str  # what a button says
    cli: str = ""  # the same on a command line; "" where there is none
    danger: bool = False  # it cannot be taken back, or touches the world
    about: str = ""  # the task, question, signal or choice it is about, where that is not the task itself
    body: Mapping[str, Any] = field(default_factory=dict)  # what the verb is given


class Wait(Struct, frozen=True, kw_only=True):
    """One thing that a task waits for."""

    kind: str  # approval, input, effect, credential, callback, poll, timer, rate_limit, task, signal, yield
    say: str
    since: datetime | None = None
    until: datetime | None = None  # when it ends by itself, or is looked at next
    path: str = ""  # of a durable function's question
    task: str = ""  # the task that is waited for
    status: str = ""  # of that task


class HeldBy(Struct, frozen=True, kw_only=True):
    """The process that holds a task."""

    user: str
    host: str
    pid: int
    state: Literal["alive", "silent", "dead"]
    silent_seconds: float = 0.0
    lease_seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.user} (pid {self.pid} on {self.host})"


class LastError(Struct, frozen=True, kw_only=True):
    """The error that a task failed with, or that its last try failed with."""

    type: str
    message: str = ""
    at: datetime | None = None
    attempt: int | None = None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.type and self.message else self.type or self.message


class Situation(Struct, frozen=True, kw_only=True):
    """Why a task is, or is not, running."""

    kind: SituationKind
    cause: Cause
    say: str  # for one line of a list, 160 characters at most
    since: datetime | None = None
    until: datetime | None = None  # when it changes by itself
    you: int = 0  # questions that wait for a person
    headline: str = ""  # 90 characters at most
    details: Sequence[str] = ()  # the facts that prove it, then what is kept
    next: str = ""  # what happens next, or what ends it
    facts: Mapping[str, Any] = field(default_factory=dict)
    by_itself: bool = False  # it changes without a person
    unattended: bool = False  # it would, but no worker is there to notice
    holder: HeldBy | None = None
    waits: Sequence[Wait] = ()
    last_error: LastError | None = None
    ways: Sequence[Way] = ()
