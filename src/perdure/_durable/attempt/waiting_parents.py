"""Which attempts of this process do nothing but wait for other tasks.

A parent that waits for its child's result keeps its process. It must not keep its place in the worker too: where every
place is taken by a parent, no child would ever begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure._durable.attempt.attempt import Run

_waits: dict[str, list[Run]] = {}  # by uid: its attempt, once for each of its calls that waits


@contextmanager
def waiting(run: Run) -> Iterator[None]:
    """One call of the attempt waits for another task."""
    _waits.setdefault(run.uid, []).append(run)
    try:
        yield
    finally:
        _waits[run.uid].pop()
        if not _waits[run.uid]:
            del _waits[run.uid]


def only_waiting(uids: Iterable[str]) -> int:
    """How many of these tasks wait for others with all that they have under way."""
    return sum(_only_waits(_waits[uid]) for uid in uids if uid in _waits) if _waits else 0


def _only_waits(runs: list[Run]) -> bool:
    run = runs[-1]
    return run.bodies == len(runs) and not run.inline and not run.effecting
