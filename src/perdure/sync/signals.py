"""Inside a durable function: words that were sent to its task.

The same as perdure.signals, without await. Written by tools/make_sync.py.
"""

from __future__ import annotations

from typing import TypeVar

from perdure import signals as _signals
from perdure._durable import waited

T = TypeVar("T")
__all__ = ["instruction", "next"]


def next(name: str, type: type[T]) -> T:
    """The next signal of this name, as this type; while there is none, the task is paused and holds no process.

    One that does not fit is refused to its sender. One that was sent before this call and does not fit is set
    aside, and `perdure where` tells it.
    """
    return waited(_signals.next(name, type))


def instruction(first: str = "") -> str:
    """The newest instruction the task was given; `first` while there was none, and without a task."""
    return waited(_signals.instruction(first))
