"""Values, arguments and failures of recorded calls as a person reads them: on one line, short, without secrets.

Pure. A journal is read by people who do not have the code, so classes that are not known here appear as their fields.
"""

from __future__ import annotations

from typing import Any

from perdure._ground.encoding import codec
from perdure._ground.exception_text import without_breaks
from perdure._ground.secrets.known_secrets import redact, redact_value
from perdure._model import Entry, name_of
from perdure._replay import arguments_in
from perdure.errors import PerdureError

# Larger values are told by their size: to decode them for one line is not worth it.
_LARGEST_SHOWN, _SHOWN = 4096, 120  # bytes, characters


def shown_value(value: Any) -> str:
    """A value on one line, for people: without raw bytes, line breaks or secrets."""
    return redact(without_breaks(repr(without_bytes(value))))


def shown_data(data: bytes | None, most: int = _SHOWN) -> str:
    """The same of an encoded value, shortened; of a large one, its size."""
    if data is None:
        return "None"
    if len(data) > _LARGEST_SHOWN:
        return f"{len(data):,} bytes"
    try:
        return shortened(shown_value(codec.peek(data)), most)
    except (PerdureError, ValueError, RecursionError):
        return "cannot be shown"


def shown_call(entry: Entry, said: str = "") -> str:
    """A call with its arguments, on one line: as an earlier entry said, or as its digest spells a short one."""
    if said:
        return shortened(without_breaks(redact(said)), 2 * _SHOWN)
    name, found = name_of(entry.path), arguments_in(entry.digest)
    if found is None:
        return redact(f"{name}(…)" if entry.digest else name)
    args, kwargs = found
    parts = [*map(repr, map(without_bytes, args)), *(f"{key}={without_bytes(item)!r}" for key, item in kwargs.items())]
    return redact(without_breaks(f"{name}({', '.join(parts)})"))


def whole_value(data: bytes | None) -> Any:
    """An encoded value whole, without raw bytes and secrets.

    Raises:
        RecordDamaged: it cannot be read.
    """
    return None if data is None else redact_value(without_bytes(codec.peek(data)))


def shortened(text: str, most: int = _SHOWN) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def without_bytes(value: Any) -> Any:
    """The value with each run of bytes replaced by its size."""
    if isinstance(value, bytes | bytearray):
        return _Bare(f"<{len(value):,} bytes>")
    if isinstance(value, dict):
        return {key: without_bytes(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_bytes(item) for item in value]
    return value


class _Bare(str):
    """A text that is shown without quotes among other values."""

    __slots__ = ()
    __repr__ = str.__str__
