"""Keep the C library from fetching the memory of large states anew each time.

glibc takes a block of 128 kB or more from the system and gives it back when it is freed, unless it has freed one as
large before. A state that grows is always a little larger than the last one: so every copy of it was fresh memory,
and each page of it a fault, which took longer than the copying (decision 0021).
"""

from __future__ import annotations

# A few copies of a state are alive at a time, and free memory beside them is kept too: twice as much, for blocks of
# this size.
_COPIES = 4
# Keeping more would cost more than the page faults it saves.
_MOST = 16 * 1024 * 1024

_kept = 128 * 1024


def keep(size: int) -> None:
    """Reuse the memory of states of this size from now on. Without glibc this changes nothing."""
    global _kept
    if _COPIES * size > _kept < _MOST:
        _kept = min(2 * _COPIES * size, _MOST)
        bytes(_kept)  # freed at once; none of its pages is touched
