"""Replay as a pure core: what was recorded and what is asked, compared."""

from perdure._replay.cursor import UNCOUNTED, Answer, Cursor, Cut, Diverged, Fresh, Recorded, Track, Uncertain
from perdure._replay.digest import digest, is_same, plain_digest

__all__ = [
    "UNCOUNTED",
    "Answer",
    "Cursor",
    "Cut",
    "Diverged",
    "Fresh",
    "Recorded",
    "Track",
    "Uncertain",
    "digest",
    "is_same",
    "plain_digest",
]
