"""A pause as callers see it, and the bodies of decisions.

A caller without `data:read` sees that there is a question, of which kind and until when, and none of its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from perdure.server.http import Caller
from perdure.server.shapes.tasks import Strict
from perdure.types import InboxAnswer, InboxItem, InboxKind, Otherwise, PauseKind, Reason, UncertainCall

Json = Any


# ── requests ─────────────────────────────────────────────────────────────────────────────────────


class InboxQuery(Strict, frozen=True, kw_only=True):
    kind: tuple[InboxKind, ...] = ()  # repeated: any of them
    task: str | None = None
    snoozed: bool = False  # True: also what the caller has put off
    limit: int = 50
    cursor: str | None = None


class Approval(Strict, frozen=True, kw_only=True):
    comment: str = ""
    edited: Json = None


class Rejection(Strict, frozen=True, kw_only=True):
    comment: str = ""


class GivenAnswer(Strict, frozen=True, kw_only=True):
    value: Json = None
    comment: str = ""


class Settlement(Strict, frozen=True, kw_only=True):
    choice: Literal["done", "retry", "fail"]
    value: Json = None
    comment: str = ""


class Snooze(Strict, frozen=True, kw_only=True):
    until: datetime


class NewToken(Strict, frozen=True, kw_only=True):
    signed: bool = False  # True: its answers have to be signed with a secret that is made with it


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


class PauseContext(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The place in its function where a pause was asked for."""

    function: str = ""
    calls: Sequence[str] | UnsetType = UNSET  # outermost first


class PauseAnswer(Struct, frozen=True, kw_only=True):
    """The end of a pause: who decided, when and what."""

    how: str
    by: str
    at: datetime | None
    decision: str = ""
    comment: str | UnsetType = UNSET
    value: Json | UnsetType = UNSET
    edited: Json | UnsetType = UNSET


class Pause(Struct, frozen=True, kw_only=True):
    """One pause of a task, open while it has no `answer`."""

    id: str
    task: str
    uid: str
    path: str
    kind: PauseKind
    reason: Reason
    asked_at: datetime
    by: Mapping[str, Json]
    expires_at: datetime | None
    otherwise: Otherwise | None
    next_look_at: datetime | None
    context: PauseContext
    text: str | UnsetType = UNSET
    schema: Json | UnsetType = UNSET
    editable: Json | UnsetType = UNSET
    choices: Sequence[str] | UnsetType = UNSET
    effect: UncertainCall | UnsetType = UNSET
    waits_for: Mapping[str, Json] | UnsetType = UNSET
    details: Mapping[str, Json] | UnsetType = UNSET
    answer: PauseAnswer | None = None
    unreadable: str = ""


class NewCallback(Struct, frozen=True, kw_only=True):
    """A token for another system, shown once."""

    token: str
    address: str
    secret: str = ""


class Counted(Struct, frozen=True):
    """True if an answer was the one that counts. False: another one came before, or the task has ended."""

    counted: bool


def pause_for(caller: Caller, item: InboxItem) -> Pause:
    """The pause, without what agents and people wrote for a caller who may not read that."""
    is_seen = caller.reads_data
    return Pause(
        id=item.id,
        task=item.task_id,
        uid=item.uid,
        path=item.path,
        kind=item.kind,
        reason=item.reason,
        asked_at=item.asked_at,
        by=item.by,
        expires_at=item.expires_at,
        otherwise=_otherwise(item, is_seen),
        next_look_at=item.next_look_at,
        context=PauseContext(function=item.function, calls=item.stack if is_seen and item.stack else UNSET),
        choices=item.choices or UNSET,
        answer=None if item.answer is None else _answer(item.answer, is_seen),
        unreadable=item.unreadable,
        **_words(item) if is_seen else {},
    )


def _words(item: InboxItem) -> dict[str, Any]:
    """The fields that agents wrote, as far as they exist."""
    waits_for = {name: value for name, value in item.waits_for.items() if name != "callback"}
    found = {
        "schema": item.schema,
        "editable": item.editable,
        "effect": item.effect,
        "waits_for": waits_for or None,
        "details": item.details or None,
    }
    return {"text": item.text, **{name: value for name, value in found.items() if value is not None}}


def _otherwise(item: InboxItem, is_seen: bool) -> Otherwise | None:
    if item.otherwise is None or is_seen:
        return item.otherwise
    return Otherwise(say=item.otherwise.say)


def _answer(answer: InboxAnswer, is_seen: bool) -> PauseAnswer:
    known: dict[str, Any] = {"how": answer.how, "by": answer.by, "at": answer.at, "decision": answer.decision}
    if not is_seen:
        return PauseAnswer(**known)
    return PauseAnswer(**known, comment=answer.comment, value=answer.value, edited=answer.edited)
