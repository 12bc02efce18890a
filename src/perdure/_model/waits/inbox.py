"""The pauses that wait for a person, whatever asked: a durable function, a task without one, an effect with an unknown
outcome.

Owns the records that `app.inbox` gives, and the kinds there are. Reading them is in perdure/_tasks/inbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, get_args

from msgspec import Struct, field

from perdure._model.waits.pause import Reason
from perdure._model.waits.question import Asked

Json = Any
# Decisions of a person. The other kinds of pauses end by another system or another task.
InboxKind = Literal["approval", "input", "effect", "credential"]
INBOX_KINDS: tuple[InboxKind, ...] = get_args(InboxKind)
PauseKind = Literal[
    "approval",
    "input",
    "effect",
    "credential",
    "callback",
    "poll",
    "timer",
    "rate_limit",
    "task",
    "signal",
    "yield",
    "diverged",  # its code does not fit its journal
    "outside",  # an operator stopped the task, and asks nothing
]
_OTHER_NAMES: Mapping[str, PauseKind] = {"wait": "timer"}


class Otherwise(Struct, frozen=True, kw_only=True):
    """What happens if no answer arrives in time."""

    say: str
    value: Json = None


class UncertainCall(Struct, frozen=True, kw_only=True):
    """The effect that a question is about."""

    name: str
    call: str  # with its arguments, as a person reads it
    key: str
    why: str
    traceback: str = ""
    is_waited_for: bool = True  # False: its code has gone on, and only the record is open


class InboxAnswer(Struct, frozen=True, kw_only=True):
    """How a pause ended: `how` is approved, rejected, answered, settled, expired, withdrawn or ended."""

    how: str
    at: datetime | None
    by: str = ""
    comment: str = ""
    decision: str = ""  # approve or reject; of an effect done, retry or fail
    value: Json = None
    edited: Json = None


class CallbackToken(Struct, frozen=True, kw_only=True):
    """The token by which another system answers, once. Neither part can be read again."""

    token: str
    secret: str = ""  # that its answers have to be signed with; "": they need no signature


class InboxItem(Struct, frozen=True, kw_only=True):
    """One pause of a task. Its `id` names this question and no other, now and later."""

    id: str
    task_id: str
    uid: str
    kind: PauseKind
    reason: Reason
    text: str
    asked_at: datetime
    path: str = ""  # of the call that asks; "" of a task that is paused by itself
    by: Mapping[str, Any] = field(default_factory=dict)  # who paused the task; {} if its function asks
    expires_at: datetime | None = None
    otherwise: Otherwise | None = None
    next_look_at: datetime | None = None
    schema: Mapping[str, Json] | None = None
    editable: Json = None
    choices: tuple[str, ...] = ()
    effect: UncertainCall | None = None
    waits_for: Mapping[str, Json] = field(default_factory=dict)  # system, job, url and the like, if it is not a person
    details: Mapping[str, Json] = field(default_factory=dict)
    answer: InboxAnswer | None = None  # None while it is open
    function: str = ""
    part_of: str = ""  # the id of the task that the asking one is a hidden part of
    stack: tuple[str, ...] = ()  # the functions that it was asked in, outermost first
    unreadable: str = ""  # why its text is missing: it is damaged, or sealed with a key that is not here

    @property
    def is_open(self) -> bool:
        return self.answer is None


def pause_kind(asked: Asked | None, topic: str | None, details: Mapping[str, Json]) -> PauseKind:
    """The kind of a pause, by what it waits for."""
    if topic == "~effect":
        return "effect"
    if asked is None:
        return "signal"
    if asked.kind == "input" and "credential" in details:
        return "credential"
    return _OTHER_NAMES.get(asked.kind, asked.kind)  # type: ignore[arg-type]


def otherwise_of(asked: Asked) -> Otherwise | None:
    """What happens when it expires; None if it never does."""
    if asked.expires_at is None:
        return None
    if asked.kind == "approval":
        return Otherwise(say="it is approved" if asked.default == "approve" else "it is rejected")
    if asked.has_default:
        return Otherwise(say="its default is taken", value=asked.default)
    return Otherwise(say="it times out")


def answer_of(said: object, at: datetime | None) -> InboxAnswer:
    """The answer of a question as it was stored."""
    given: Mapping[str, Json] = said if isinstance(said, Mapping) else {"value": said}
    decision = str(given.get("decision") or given.get("choice") or "")
    return InboxAnswer(
        how=_how(given, decision),
        at=at,
        by=str(given.get("by") or ""),
        comment=str(given.get("comment") or ""),
        decision=decision,
        value=given.get("value"),
        edited=given.get("edited"),
    )


def _how(given: Mapping[str, Json], decision: str) -> str:
    if given.get("withdrawn"):
        return "withdrawn"
    if given.get("expired"):
        return "expired"
    if "choice" in given:
        return "settled"
    return {"approve": "approved", "reject": "rejected"}.get(decision, "answered")
