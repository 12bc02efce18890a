"""Replay as a pure core: what was recorded and what is asked, compared."""

from perdure._replay.cursor import Answer, Cursor, Cut, Diverged, Fresh, Recorded, Track, Uncertain
from perdure._replay.digest import digest, is_same

__all__ = ["Answer", "Cursor", "Cut", "Diverged", "Fresh", "Recorded", "Track", "Uncertain", "digest", "is_same"]
