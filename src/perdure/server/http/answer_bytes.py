"""Answers as bytes: JSON in the mapping of `--json`, gzip when the client takes it, ETags."""

from __future__ import annotations

import gzip
import json
from typing import Any

from msgspec import Raw

from perdure._ground.encoding.json_values import plain

_WORTH_GZIP = 1024  # bytes


def to_json(value: Any) -> bytes:
    """The value as JSON; a `Raw` is JSON already."""
    if isinstance(value, Raw):
        return bytes(value)
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        "utf-8", "backslashreplace"
    )


def encode(value: Any, accepted: str) -> tuple[bytes, bool]:
    """The body of an answer, and whether it is under gzip."""
    body = to_json(value)
    squeezed = squeeze(body, accepted)
    return (body, False) if squeezed is None else (squeezed, True)


def squeeze(body: bytes, accepted: str) -> bytes | None:
    """The body under gzip; None when the client does not take it or it is not worth it."""
    if len(body) < _WORTH_GZIP or "gzip" not in accepted.lower():
        return None
    return gzip.compress(body, 5, mtime=0)


def version_tag(version: int) -> str:
    return f'"v{version}"'
