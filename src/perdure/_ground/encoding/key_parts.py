"""Texts as parts of a key in `app.storage`: a part contains no slash, so two keys never collide."""

from __future__ import annotations

import re

_ESCAPED = re.compile("%([0-9A-F]{2})")


def quoted(text: str, also: str = "") -> str:
    """The text as one part of a key; `also` names further characters (ASCII) that the part must not have."""
    for character in f"%/\0{also}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def unquoted(part: str) -> str:
    """The text that a part was made from."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), part)
