"""What the child of a fork has to do with its parent's connections: nothing."""

from __future__ import annotations

import ctypes
from typing import Any


def leave_alone(connection: Any) -> None:
    """Keep the object for ever, so that the child never says goodbye on a socket that is its parent's."""
    if connection is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
