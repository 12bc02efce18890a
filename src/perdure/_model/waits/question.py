"""The stored data of an open question, and what to do when it is due. Pure.

A question of a durable function and the pause of a task without one are the same here: both say how they can be
answered, when to look at them, and what happens without an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from perdure._model.waits.pause import Pause

Json = Any
Kind = Literal["approval", "input", "callback", "poll", "wait", "rate_limit", "task", "yield"]

# Things outside are checked this often, unless another interval was given.
USUAL_INTERVAL = timedelta(seconds=30)
# However often it grows, an interval between two checks stays below this (or what it began with).
LONGEST_INTERVAL_MS = 3_600_000
# A callback kept while no process could be told is found by looking.
CALLBACK_LOOK_MS = 30_000


class Asked(Struct, frozen=True, kw_only=True):
    """How a question can be answered, and when to look at it without an answer."""

    kind: Kind
    due_at: int | None = None  # when a wait is over
    expires_at: int | None = None
    remind_at: int | None = None
    default: Json = None  # what happens when it expires
    has_default: bool = False
    schema: Mapping[str, Json] | None = None
    editable: Json = None
    check: Mapping[str, Json] | None = None  # made by any worker; without one, only the function's code can look
    every_ms: int = 0
    backoff: float = 1.0
    checks: int = 0  # how often it was checked
    provider: str = ""


_USUAL = Asked(kind="yield")


def to_stored(asked: Asked) -> dict[str, Json]:
    """Its fields, without those that say nothing."""
    said = {name: value for name, value in asdict(asked).items() if value != getattr(_USUAL, name)}
    return {"kind": asked.kind, **said}


def from_stored(stored: Mapping[str, Json] | None) -> Asked | None:
    """A newer perdure may have stored more; unknown fields are left alone."""
    if not stored or "kind" not in stored:
        return None
    return Asked(**{name: value for name, value in stored.items() if name in Asked.__struct_fields__})


_KIND_OF: Mapping[str, Kind] = {
    "human_approval": "approval",
    "human_input": "input",
    "external_dependency": "callback",
    "scheduled_wait": "wait",
    "rate_limit": "rate_limit",
    "checkpoint": "yield",
}


def of_pause(pause: Pause) -> Asked:
    """What a paused task without questions waits for."""
    given, since = pause.payload, _ms(pause.since)
    check = {name: given[name] for name in ("url", "command", "file", "task", "expect") if name in given}
    every = given.get("every", USUAL_INTERVAL)
    remind = given.get("remind")
    return Asked(
        kind="poll" if check else _KIND_OF[pause.reason],
        # What only yields is due at once.
        due_at=_ms(pause.due_at) if pause.due_at is not None else since if pause.reason == "checkpoint" else None,
        expires_at=_ms(pause.expires_at) if pause.expires_at is not None else None,
        remind_at=since + _length_ms(remind) if remind is not None else None,
        default=given.get("default", "reject" if pause.reason == "human_approval" else None),
        has_default="default" in given or pause.reason == "human_approval",
        schema=given.get("schema"),
        editable=given.get("editable"),
        check=check or None,
        every_ms=_length_ms(every) if check or "callback" in given else 0,
        backoff=given.get("backoff", 1.0),
        checks=given.get("checks", 0),
        provider=given.get("provider", ""),
    )


def checked_once_more(pause: Pause) -> Pause:
    return replace(pause, payload={**pause.payload, "checks": pause.payload.get("checks", 0) + 1})


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _length_ms(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)


# ── what to do ───────────────────────────────────────────────────────────────────────────────────


class Answer(Struct, frozen=True):
    """The pause is over."""

    value: dict[str, Json]
    how: str  # due, expired


class Remind(Struct, frozen=True):
    due_at: int | None


class Check(Struct, frozen=True):
    """Check what it waits for; the next check is due then, even if this one never finishes."""

    due_at: int


class Wake(Struct, frozen=True):
    """Only its code can look."""


class Later(Struct, frozen=True):
    due_at: int | None


Decision = Answer | Remind | Check | Wake | Later
EXPIRED: Mapping[str, Json] = {"expired": True}


def first_look(asked: Asked, now_ms: int, spread: float = 0.0) -> int | None:
    """When to look at a new question first; None: it waits for an answer only."""
    if asked.kind == "poll":
        return next_check(asked, now_ms, spread)
    if asked.kind in ("wait", "rate_limit", "yield"):
        return asked.due_at
    if asked.kind == "callback" and asked.every_ms:
        return _earliest(now_ms + CALLBACK_LOOK_MS, asked.remind_at, asked.expires_at)
    return _earliest(asked.remind_at, asked.expires_at)


def next_check(asked: Asked, now_ms: int, spread: float = 0.0) -> int:
    """When to check again: the interval grows by `backoff`, a little differently for each (`spread`, 0 to 1)."""
    longest = max(LONGEST_INTERVAL_MS, asked.every_ms)
    try:
        interval = min(asked.every_ms * asked.backoff**asked.checks, longest)
    except OverflowError:
        interval = longest
    due = now_ms + max(int(interval * (1 + 0.1 * spread)), 1)
    return due if asked.expires_at is None else min(due, max(asked.expires_at, now_ms + 1))


def decide(asked: Asked, now_ms: int, *, reset_at: int | None = None, spread: float = 0.0) -> Decision:
    """What to do about an open question now. `reset_at` is the provider's last announcement."""
    if asked.expires_at is not None and asked.expires_at <= now_ms:
        return Answer(_when_expired(asked), "expired")
    if asked.kind == "rate_limit" and reset_at is not None and reset_at > now_ms:
        return Later(reset_at + jitter_ms(reset_at - now_ms, spread))
    if asked.kind in ("wait", "rate_limit", "yield"):
        is_due = asked.due_at is not None and asked.due_at <= now_ms
        return Answer({"value": None}, "due") if is_due else Later(asked.due_at)
    if asked.kind == "poll":
        return Wake() if asked.check is None else Check(next_check(asked, now_ms, spread))
    if asked.remind_at is not None and asked.remind_at <= now_ms:
        return Remind(asked.expires_at)
    return Later(first_look(asked, now_ms))


def jitter_ms(length_ms: int, spread: float) -> int:
    """A little more than asked for, so that those who were told the same do not come back at the same moment."""
    return int(min(max(length_ms // 10, 100), 5_000) * spread)


def _when_expired(asked: Asked) -> dict[str, Json]:
    if asked.kind == "approval":
        return {"decision": asked.default, "by": "", "comment": "", "edited": None, **EXPIRED}
    return {"value": asked.default, **EXPIRED} if asked.has_default else dict(EXPIRED)


def _earliest(*moments: int | None) -> int | None:
    return min((moment for moment in moments if moment is not None), default=None)
