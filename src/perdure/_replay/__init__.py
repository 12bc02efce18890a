"""Replay as a pure core: compare the recorded calls with the calls the code makes now."""

from perdure._replay.cursor import (
    LOOSE,
    TIMERS,
    UNCOUNTED,
    WAKING,
    Answer,
    Cursor,
    Cut,
    Diverged,
    Fresh,
    Recorded,
    Track,
    Uncertain,
    call_of,
)
from perdure._replay.digest import SPELLED, arguments_in, digest, is_same, plain_digest

__all__ = [
    "LOOSE",
    "SPELLED",
    "TIMERS",
    "UNCOUNTED",
    "WAKING",
    "Answer",
    "Cursor",
    "Cut",
    "Diverged",
    "Fresh",
    "Recorded",
    "Track",
    "Uncertain",
    "arguments_in",
    "call_of",
    "digest",
    "is_same",
    "plain_digest",
]
