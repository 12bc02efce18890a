"""What the child of a fork does with its parent's connections: nothing."""

from __future__ import annotations

import ctypes


def leave_alone(connection: object) -> None:
    """Keep the object for ever, so that the child never says goodbye on its parent's socket."""
    if connection is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
