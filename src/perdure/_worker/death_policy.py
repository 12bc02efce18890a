"""What follows when a process has died on a task: another attempt, a later one, or an end with its cause. Pure.

A task that gets further between two deaths has bad luck, and goes on at once. One that dies again and again at the
same place is what kills its workers: it waits longer each time, and after a few times it is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from perdure._model import Entry

FIRST_WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(minutes=1)
# Rows of a line never reach this, so a later line always counts as further.
_LINE = 1_000_000_000


class Loss(Struct, frozen=True):
    losses: int  # in a row, without getting further
    mark: int  # how far it had come
    wait: timedelta
    gives_up: bool


def how_far(line: int, checkpoints: int, entries: Sequence[Entry]) -> int:
    """A number that rises with what was done. An intent counts for nothing: it is written before each try."""
    return line * _LINE + checkpoints + sum(entry.kind != "intent" for entry in entries)


def after_loss(losses: int, mark_before: int, mark: int, max_retries: int) -> Loss:
    """What follows a death, after `losses` others at `mark_before`."""
    count = losses + 1 if losses and mark == mark_before else 1
    wait = timedelta(0) if count == 1 else min(FIRST_WAIT * 2 ** min(count - 2, 20), LONGEST_WAIT)
    return Loss(count, mark, wait, gives_up=count > max_retries)
