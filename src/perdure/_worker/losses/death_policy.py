"""Decide what follows when a process died on a task: retry now, retry later, or give up with a cause. Pure.

A task that made progress between two deaths had bad luck and is retried at once. A task that dies again and again at
the same place probably kills its workers: each retry waits longer, and after `max_retries` deaths perdure gives up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from perdure._model import Entry

FIRST_WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(minutes=1)
# No line has this many rows, so a later line always counts as further.
_LINE = 1_000_000_000


class Loss(Struct, frozen=True):
    losses: int  # in a row, without progress
    mark: int  # how far the task had come
    wait: timedelta
    gives_up: bool


def progress_mark(line: int, checkpoints: int, entries: Sequence[Entry]) -> int:
    """A number that rises with progress. Intents do not count: one is written before every try of an effect."""
    return line * _LINE + checkpoints + sum(entry.kind != "intent" for entry in entries)


def after_loss(losses: int, mark_before: int, mark: int, max_retries: int) -> Loss:
    """Decide what follows a death that comes after `losses` others at `mark_before`."""
    count = losses + 1 if losses and mark == mark_before else 1
    wait = timedelta(0) if count == 1 else min(FIRST_WAIT * 2 ** min(count - 2, 20), LONGEST_WAIT)
    return Loss(count, mark, wait, gives_up=count > max_retries)
