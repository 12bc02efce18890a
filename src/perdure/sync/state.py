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
    """Add an item to a list in the task's state, once. The checkpoint it makes stores only the item.

    Without a task nothing is stored.

    Raises:
        InvalidInput: the value at the path is not a list, or it is called inside a step.
        NotStorable, TooLarge: nothing was written.
    """
    waited(_state.append(path, item))
