"""Which attempts of this process do nothing but wait for other tasks.

A parent that waits for its child's result keeps its process. It must not keep its place in the worker too: where every
place is taken by a parent, no child would ever begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure._durable.attempt.attempt import Attempt

_waits: dict[str, list[Attempt]] = {}  # by uid: its attempt, once for each of its calls that waits


@contextmanager
def waiting(attempt: Attempt) -> Iterator[None]:
    """One call of the attempt waits for another task."""
    _waits.setdefault(attempt.uid, []).append(attempt)
    try:
        yield
    finally:
        _waits[attempt.uid].pop()
        if not _waits[attempt.uid]:
            del _waits[attempt.uid]


def only_waiting(uids: Iterable[str]) -> int:
    """Count the tasks whose every call under way waits for other tasks."""
    return sum(_only_waits(_waits[uid]) for uid in uids if uid in _waits) if _waits else 0


def _only_waits(attempts: list[Attempt]) -> bool:
    attempt = attempts[-1]
    return attempt.activity.bodies == len(attempts) and not attempt.activity.inline and not attempt.activity.has_effects
