"""Values as JSON; the field names are the attribute names of the record.

A moment is ISO 8601 in UTC, a duration is its seconds, bytes are base64. A value that JSON lacks (a NaN, an object of
the agent's own class) becomes a describing text, so that every record can be printed.
"""

from __future__ import annotations

import base64
import json
import math
import re
import reprlib
from collections.abc import Mapping
from collections.abc import Set as AnySet
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Any

# Characters that control a terminal or reorder its text: C0, C1, bidi and invisible ones, lone surrogates.
HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def as_json(value: object, indent: int | None = None, *, ascii: bool = False) -> str:
    """One JSON document without characters that control a terminal."""
    text = json.dumps(plain(value), ensure_ascii=ascii, indent=indent, allow_nan=False)
    # Except for JSON's own line breaks, hidden characters are inside strings, where \u… means the same.
    return HIDDEN.sub(lambda found: found[0] if found[0] == "\n" else json.dumps(found[0])[1:-1], text)


def plain(value: object) -> Any:
    """The value in JSON's types."""
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, AnySet):
        return sorted((plain(item) for item in value), key=repr)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    return _other(value)


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, item in value.items():
        name = key if isinstance(key, str) else _key(key)
        made[repr(key) if name in made else name] = plain(item)
    return made


def _key(key: object) -> str:
    shown = plain(key)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def _other(value: object) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, date):
        return value.isoformat()
    if names := _names(type(value)):
        found = ((name, getattr(value, name)) for name in names)
        return {name: plain(item) for name, item in found if type(item).__name__ != "UnsetType"}
    if type(value).__module__ in ("decimal", "uuid", "datetime", "pathlib"):
        return str(value)
    return f"<{type(value).__name__}> {reprlib.repr(value)}"


def _names(kind: type[Any]) -> list[str]:
    """The fields and properties (remaining, is_paused, …) of a record class; empty for any other class."""
    if hasattr(kind, "__dataclass_fields__"):
        import dataclasses  # not at the top: `--help` must load neither dataclasses nor msgspec

        fields = [field.name for field in dataclasses.fields(kind)]
    else:
        fields = [*getattr(kind, "__struct_fields__", ())]
    if not fields or not kind.__module__.startswith("perdure."):
        return fields
    return fields + [name for name, what in vars(kind).items() if isinstance(what, property) and name[0] != "_"]


def iso(when: datetime) -> str:
    if when.tzinfo is None:
        return when.isoformat()
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
