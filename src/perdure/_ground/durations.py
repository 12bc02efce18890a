"""Read a length of time as people write it: a timedelta, or a text such as "10m".

Owns the allowed forms of a duration, for the whole API and the command line. A bare number is refused, because its unit
is unknown: seconds or minutes.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TypeAlias, overload

from perdure.errors import InvalidInput

Duration: TypeAlias = timedelta | str

_UNITS = {
    "ms": "milliseconds",
    "s": "seconds",
    "m": "minutes",
    "min": "minutes",
    "h": "hours",
    "d": "days",
    "w": "weeks",
}
_PART = r"(\d+(?:\.\d+)?)\s*(min|ms|[smhdw])"
_WHOLE = re.compile(rf"\s*(?:{_PART}\s*)+", re.ASCII)
_NOTHING = timedelta(0)
EXAMPLES = "500ms, 30s, 10m, 1h30m or 2d"


def parse_duration(text: str) -> timedelta | None:
    """`500ms`, `30s`, `10m`, `2h`, `7d`, `1h30m`; None when it is something else."""
    if not _WHOLE.fullmatch(text):
        return None
    try:
        parts = [timedelta(**{_UNITS[unit]: float(number)}) for number, unit in re.findall(_PART, text, re.ASCII)]
        return sum(parts, _NOTHING)
    except OverflowError:
        return None


def problem_with_duration(value: object) -> str:
    """Why a value is not a duration, as the end of a sentence about it."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "a number without a unit" if is_number else "not a length of time"


def how_to_write(name: str, value: object = None) -> str:
    """The advice for a text that is not a duration."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    given = f'{name}="{value}s"' if is_number else f'{name}="10m"'
    return f"write {given}, or another text like {EXAMPLES}, or give a timedelta"


@overload
def require_timedelta(name: str, value: Duration, *, is_positive: bool = ...) -> timedelta: ...
@overload
def require_timedelta(name: str, value: None, *, is_positive: bool = ...) -> None: ...
@overload
def require_timedelta(name: str, value: Duration | None, *, is_positive: bool = ...) -> timedelta | None: ...
def require_timedelta(name: str, value: object, *, is_positive: bool = False) -> timedelta | None:
    """The length of time that was given as the argument `name`; None stays None.

    Raises:
        InvalidInput: it is a number, another text, or shorter than nothing (or nothing, if `is_positive`).
    """
    if value is None:
        return None
    found = parse_duration(value) if isinstance(value, str) else value
    if not isinstance(found, timedelta):
        raise InvalidInput(f"{name} is {value!r}, {problem_with_duration(value)}", do=how_to_write(name, value))
    if found < _NOTHING or (is_positive and found == _NOTHING):
        raise InvalidInput(f"{name} is {value}; it must be {'longer than' if is_positive else 'at least'} 0 s")
    return found


def require_seconds(name: str, value: float | Duration) -> float:
    """The same in seconds, for the few arguments whose plain number means seconds; whole ones as an int.

    Raises:
        InvalidInput: as above.
    """
    if type(value) is float or type(value) is int:
        return value
    seconds = require_timedelta(name, value).total_seconds()  # type: ignore[arg-type]
    return int(seconds) if seconds.is_integer() else seconds


_STEPS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def shown_length(time: timedelta) -> str:
    """A length of time for people, in its two largest units: `3 min 20 s`."""
    rest, parts = int(time.total_seconds()), []
    for size, unit in _STEPS:
        number, rest = divmod(rest, size)
        parts.append(f"{number} {unit}" if number else "")
    first = next((at for at, part in enumerate(parts) if part), len(parts) - 1)
    return " ".join(filter(None, parts[first : first + 2])) or "0 s"
