"""Keep the child of a fork from touching its parent's connections."""

from __future__ import annotations

import ctypes


def leave_alone(connection: object) -> None:
    """Keep the object for ever, so that the child never says goodbye on its parent's socket."""
    if connection is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
