"""Choose how many bytes to read at once: few, until few were not enough.

Memory for a large read is taken from the system and given back each time, which takes longer than reading a short
answer.
"""

from __future__ import annotations

_LITTLE = 1 << 14


class Gulp:
    """The size of the next read from one place."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = _LITTLE

    def took(self, size: int) -> bool:
        """Note how much was read; returns whether there may be more."""
        was_full = size >= self.size
        self.size = min(self._most, 4 * self.size) if was_full else max(_LITTLE, self.size // 4)
        return was_full
