"""Inside a durable function: begin at the last checkpoint instead of replaying from the start.

The same as perdure.checkpoint, without await. Written by tools/make_sync.py.
"""

from __future__ import annotations

from typing import Any, TypeVar

from perdure import checkpoint as _checkpoint
from perdure._durable import waited

T = TypeVar("T")
__all__ = ["last", "save"]


def last(first: T) -> T:
    """The state that was saved last, as the type of `first`; `first` if there is none. Call it before any step."""
    return waited(_checkpoint.last(first))


def save(state: Any, *, label: str = "") -> None:
    """Make `state` the task's state. The next attempt begins here if the function has called `checkpoint.last`, and
    replays from the start if not. Without a task nothing is stored.

    Keys that others have set meanwhile stay; of a key that both have set, this state's value counts.

    Raises:
        InvalidInput: other asyncio tasks of the function still run; a state cannot describe where they are.
        NotStorable, TooLarge: nothing was written.
    """
    waited(_checkpoint.save(state, label=label))
