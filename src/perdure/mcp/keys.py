"""The keys of a terminal by name, as people write them: Enter, C-c, M-x, Up, F5. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perdure.errors import InvalidInput

_NAMED = {
    "Enter": "\r",
    "Tab": "\t",
    "BTab": "\x1b[Z",
    "Escape": "\x1b",
    "Space": " ",
    "Backspace": "\x7f",
    "Up": "\x1b[A",
    "Down": "\x1b[B",
    "Right": "\x1b[C",
    "Left": "\x1b[D",
    "Home": "\x1b[H",
    "End": "\x1b[F",
    "Insert": "\x1b[2~",
    "Delete": "\x1b[3~",
    "PageUp": "\x1b[5~",
    "PageDown": "\x1b[6~",
    "F1": "\x1bOP",
    "F2": "\x1bOQ",
    "F3": "\x1bOR",
    "F4": "\x1bOS",
    "F5": "\x1b[15~",
    "F6": "\x1b[17~",
    "F7": "\x1b[18~",
    "F8": "\x1b[19~",
    "F9": "\x1b[20~",
    "F10": "\x1b[21~",
    "F11": "\x1b[23~",
    "F12": "\x1b[24~",
}
_OTHER_NAMES = {"Return": "Enter", "Esc": "Escape", "BSpace": "Backspace", "PgUp": "PageUp", "PgDn": "PageDown"}
_BY_NAME = {name.lower(): text for name, text in _NAMED.items()} | {
    other.lower(): _NAMED[name] for other, name in _OTHER_NAMES.items()
}
_CONTROL = re.compile(r"(?:C|Ctrl|\^)[-+]?([A-Za-z@\[\\\]^_ ])", re.IGNORECASE)
_META = re.compile(r"(?:M|Alt)-(.)", re.IGNORECASE)


def keys_as_text(keys: Sequence[str]) -> str:
    """What a terminal sends for these keys.

    Raises:
        InvalidInput: a key has no such name.
    """
    return "".join(map(_key, keys))


def _key(name: str) -> str:
    if (text := _BY_NAME.get(name.lower())) is not None:
        return text
    if found := _CONTROL.fullmatch(name):
        return "\0" if found[1] == " " else chr(ord(found[1].upper()) & 0x1F)
    if found := _META.fullmatch(name):
        return f"\x1b{found[1]}"
    raise InvalidInput(f"{name[:40]!r} is not the name of a key", do="Enter, Tab, Up, C-c, M-x, F5 …; words go in text")
