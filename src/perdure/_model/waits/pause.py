"""The six reasons to pause, and what each of them takes.

A pause's payload is checked before anything is written: a field of the wrong kind is refused, and so
is one that looks like a misspelt field (an approval that was meant to expire and never would). Other
fields are the caller's own and are kept as `details`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from msgspec import Struct, field

from perdure._ground.clock import moment, to_ms
from perdure._ground.durations import parse_duration, require_timedelta
from perdure._model.waits.token import hash_of_token
from perdure.errors import InvalidInput, InvalidPayload

Json = Any
Reason = Literal["human_approval", "human_input", "external_dependency", "scheduled_wait", "rate_limit", "checkpoint"]
REASONS: tuple[Reason, ...] = get_args(Reason)


class Pause(Struct, frozen=True, kw_only=True):
    """Why a task is paused, what it waits for, and since when."""

    reason: Reason
    message: str
    since: datetime
    by: Mapping[str, Any]
    expires_at: datetime | None = None  # when the default applies
    due_at: datetime | None = None  # when it continues by itself
    next_look_at: datetime | None = None  # when to check next what it waits for
    payload: Mapping[str, Json] = field(default_factory=dict)
    details: Mapping[str, Json] = field(default_factory=dict)


def make_pause(reason: str, message: str, payload: Mapping[str, Json], now_ms: int, by: Mapping[str, Any]) -> Pause:
    """The pause as it will be stored.

    Raises:
        InvalidPayload: the reason is not one of the six, or its payload does not fit it.
    """
    if reason not in REASONS:
        raise InvalidPayload(str(reason), f"is none of the six reasons: {', '.join(REASONS)}")
    if not str(message).strip():
        raise InvalidPayload(reason, "needs a message that says what it waits for")
    known = _FIELDS[reason]
    given = {name: value for name, value in payload.items() if value is not None}
    details = {name: value for name, value in given.items() if name not in known}
    _refuse_misspelt(reason, details, known)
    checked = {name: known[name](reason, name, given[name], now_ms) for name in known if name in given}
    return Pause(
        reason=reason,
        message=message,
        since=moment(now_ms),
        by=by,
        expires_at=checked.pop("expires", None),
        due_at=_due(reason, checked),
        payload=checked,
        details=details,
    )


def _refuse_misspelt(reason: str, details: Mapping[str, Json], known: Mapping[str, Check]) -> None:
    if not details:
        return
    from difflib import get_close_matches

    for name in details:
        close = get_close_matches(name, known, n=1, cutoff=0.8)
        if close:
            raise InvalidPayload(reason, f"has no field {name!r}; did you mean {close[0]!r}?")


def _due(reason: str, checked: dict[str, Any]) -> datetime | None:
    """When a timer ends the pause: the one field of the reason that says so."""
    names = {"scheduled_wait": ("until", "duration"), "rate_limit": ("reset_at", "retry_after")}.get(reason, ())
    given = [name for name in names if name in checked]
    if reason == "scheduled_wait" and len(given) != 1:
        raise InvalidPayload(reason, "needs either until= (a moment) or duration= (a length of time)")
    if len(given) > 1:
        raise InvalidPayload(reason, f"takes either {given[0]}= or {given[1]}=, not both")
    due: datetime | None = checked[given[0]] if given else None
    return due


# ── what a field may be ──────────────────────────────────────────────────────────────────────────

Check = Callable[[str, str, Any, int], Any]


def _text(reason: str, name: str, value: object, _: int) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidPayload(reason, f"takes {name} as text, not {value!r}")
    return value


def _anything(_reason: str, _name: str, value: object, _now: int) -> Any:
    return value


def _mapping(reason: str, name: str, value: object, _: int) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidPayload(reason, f"takes {name} as a mapping (a JSON Schema), not {value!r}")
    return dict(value)


def _number(reason: str, name: str, value: object, _: int) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise InvalidPayload(reason, f"takes {name} as a number above 0, not {value!r}")
    return float(value)


def _growth(reason: str, name: str, value: object, now_ms: int) -> float:
    factor = _number(reason, name, value, now_ms)
    if not 1 <= factor <= 10:
        raise InvalidPayload(reason, f"takes {name} as a factor from 1 to 10, not {value!r}")
    return factor


def _url(reason: str, name: str, value: object, now_ms: int) -> str:
    url = _text(reason, name, value, now_ms)
    if not url.lower().startswith(("http://", "https://")):
        raise InvalidPayload(reason, f"takes {name} as an http or https address, not {value!r}")
    return url


def _arguments(reason: str, name: str, value: object, _: int) -> list[str]:
    """A command as its words: no shell ever reads it."""
    if not isinstance(value, list | tuple) or not value or not all(isinstance(one, str) and one for one in value):
        raise InvalidPayload(reason, f'takes {name} as a list of words such as ["make", "status"], not {value!r}')
    return list(value)


def _token(reason: str, name: str, value: object, _: int) -> str:
    """Of a callback's token only the hash is kept."""
    digest = hash_of_token(value) if isinstance(value, str) else None
    if digest is None:
        raise InvalidPayload(reason, f"takes {name} as a token of task.callback_token()")
    return digest


def _choice(*choices: str) -> Check:
    def check(reason: str, name: str, value: object, _: int) -> str:
        if value not in choices:
            raise InvalidPayload(reason, f"takes {name} as {' or '.join(choices)}, not {value!r}")
        return str(value)

    return check


def _length(reason: str, name: str, value: Any, _: int) -> timedelta:
    try:
        length: timedelta = require_timedelta(name, value)
        return length
    except InvalidInput as refused:
        raise InvalidPayload(reason, f"is refused: {refused.what}", do=refused.do) from None


def _interval(reason: str, name: str, value: object, now_ms: int) -> timedelta:
    length = _length(reason, name, value, now_ms)
    if length < timedelta(milliseconds=100):
        raise InvalidPayload(reason, f"takes {name} as a tenth of a second or longer, not {value!r}")
    return length


def _when(reason: str, name: str, value: object, now_ms: int) -> datetime:
    """A moment, or a length of time from now."""
    try:
        if isinstance(value, str) and parse_duration(value) is None:
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return moment(to_ms(value))
        return moment(now_ms) + _length(reason, name, value, now_ms)
    except InvalidPayload:
        raise
    except (InvalidInput, ValueError, OverflowError) as problem:
        raise InvalidPayload(reason, f"takes {name} as an aware moment or a length of time, not {value!r}") from problem


def _retry_after(reason: str, name: str, value: Any, now_ms: int) -> datetime:
    """As the header of that name has it: a number, also as text, is seconds."""
    is_header = isinstance(value, str) and value.strip().isdecimal()
    if is_header or (isinstance(value, int | float) and not isinstance(value, bool) and value >= 0):
        try:
            return moment(now_ms) + timedelta(seconds=float(value))
        except (ValueError, OverflowError):
            raise InvalidPayload(reason, f"takes {name} as the seconds a provider has named, not {value!r}") from None
    return _when(reason, name, value, now_ms)


_FIELDS: Mapping[str, Mapping[str, Check]] = {
    "human_approval": {
        "question": _text,
        "expires": _when,
        "default": _choice("approve", "reject"),
        "editable": _anything,
        "remind": _length,
    },
    "human_input": {
        "question": _text,
        "schema": _mapping,
        "expires": _when,
        "default": _anything,
        "remind": _length,
    },
    "external_dependency": {
        "system": _text,
        "job": _text,
        "url": _url,
        "command": _arguments,
        "file": _text,
        "task": _text,
        "callback": _token,
        "expect": _anything,
        "every": _interval,
        "backoff": _growth,
        "expires": _when,
        "remind": _length,
    },
    "scheduled_wait": {"until": _when, "duration": _when},
    "rate_limit": {"provider": _text, "retry_after": _retry_after, "reset_at": _when, "max_wait": _length},
    "checkpoint": {},
}
