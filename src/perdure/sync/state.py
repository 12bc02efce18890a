"""Inside a durable function: the state that others see of its task.

The same as perdure.state, without await. Written by tools/make_sync.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure import state as _state
from perdure._durable import waited

__all__ = ["append"]


def append(path: str | Sequence[str | int], item: Any) -> None:
    """Add an item to a list in the task's state, once; a checkpoint that costs what the item does.

    Without a task nothing is kept.

    Raises:
        InvalidInput: what is at the path is no list, or it is called inside a step.
        NotStorable, TooLarge: nothing was written.
    """
    waited(_state.append(path, item))
