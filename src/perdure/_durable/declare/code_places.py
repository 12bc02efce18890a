"""The place where a function is written: its module, its file, its `def`.

Owns the question "are these two the same function?", also for scripts, notebooks and files that are loaded again.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any


def module_of(function: Callable[..., Any]) -> str:
    """The module it is in, as others would import it: a script by the name of its file."""
    name: str = getattr(_written(function), "__module__", None) or ""
    if name not in ("__main__", "__mp_main__"):
        return name
    main = sys.modules.get(name)
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return os.path.splitext(os.path.basename(file))[0] if file else name


def is_same_module(a: str, b: str) -> bool:
    """True if two names can be one module's: a script does not know its own package."""
    return a == b or a.endswith(f".{b}") or b.endswith(f".{a}")


def is_another(a: Callable[..., Any], b: Callable[..., Any]) -> bool:
    # The same file loaded again, a notebook's cell run again, a test's local function: all are the same one.
    a, b = _written(a), _written(b)
    if not hasattr(a, "__code__") or not hasattr(b, "__code__"):  # written in C: one there is
        return False
    if "<locals>" in a.__qualname__ or "<locals>" in b.__qualname__:
        return False
    files = (a.__code__.co_filename, b.__code__.co_filename)
    return a.__qualname__ != b.__qualname__ if files[0] == files[1] else not (_is_cell(a) and _is_cell(b))


def _written(function: Any) -> Any:
    """The def behind it: a partial's function, the `__call__` of an object."""
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isfunction(function) else getattr(function, "__func__", type(function).__call__)


def _is_cell(function: Callable[..., Any]) -> bool:
    """True if it is a cell of a notebook: an edited cell is another file by name, and none of them is on disk."""
    return function.__module__ == "__main__" and not os.path.exists(function.__code__.co_filename)


def file_of(function: Callable[..., Any]) -> str:
    return str(getattr(getattr(_written(function), "__code__", None), "co_filename", ""))


def place_of(function: Callable[..., Any]) -> str:
    function = _written(function)
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
