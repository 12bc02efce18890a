"""Whether the typed text ends between two keys, or inside one. Pure.

Many keys are several bytes, and some wait for another: Ctrl-V takes the next one as it is, Ctrl-R searches, a paste
goes on until its end. A byte that is typed then is not the key it would be by itself.
"""

from __future__ import annotations

from typing import Final

# The sequence the next byte belongs to; empty: it begins a key.
BETWEEN: Final = ""
UNKNOWN: Final = "unknown"
_PASTE, _PASTE_END = "[200~", "\x1b[201~"
_ENTER = "\r\n\x03\x1c"  # Enter, and what interrupts: whatever was open is over
_NEXT_AS_IT_IS = "\x16\x11\x1d"  # Ctrl-V, Ctrl-Q, Ctrl-]
_SEARCH, _SEARCH_ENDS = "\x12\x13", "\x07\x1b"
_LONGEST = 32


def after(state: str, data: bytes) -> str:
    """The state after these bytes: a few characters, which do not show the typed text."""
    for key in data.decode("latin-1"):
        state = _next(state, key)
    return state


def _next(state: str, key: str) -> str:
    kind, _, part = state.partition(":")
    if kind == "paste":  # and how much of its end was there
        part = part + key if _PASTE_END.startswith(part + key) else key if key == _PASTE_END[0] else ""
        return BETWEEN if part == _PASTE_END else f"paste:{part}"
    if kind == "quoted" or key in _ENTER:
        return BETWEEN
    if kind == "escape":
        return f"sequence:{key}" if key in "[O" else BETWEEN
    if kind == "sequence":
        if part + key == _PASTE:
            return "paste:"
        return BETWEEN if "@" <= key <= "~" or len(part) > _LONGEST else f"sequence:{part}{key}"
    if kind == UNKNOWN or (kind == "search" and key not in _SEARCH_ENDS):
        return kind
    if kind == "prefix":
        return BETWEEN
    if key in _NEXT_AS_IT_IS:
        return "quoted"
    if key in _SEARCH:
        return "search"
    return {"\x1b": "escape", "\x18": "prefix"}.get(key, BETWEEN)
