"""Check the arguments of a decorator: a mistake is refused where it is written, not when the task gets there."""

from __future__ import annotations

import inspect
from typing import Any

from perdure.errors import InvalidInput


def is_async(function: Any) -> bool:
    """True if calling it returns an awaitable: an `async def`, or an object whose `__call__` is one."""
    if inspect.isroutine(function) or not callable(function):
        return inspect.iscoroutinefunction(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def refuse_no_function(function: object) -> None:
    if callable(function) and not isinstance(function, staticmethod):
        return
    if isinstance(function, classmethod | staticmethod):
        kind = "classmethod" if isinstance(function, classmethod) else "staticmethod"
        what, do = f"a {kind} stands below the decorator", f"write @{kind} above it"
    elif isinstance(function, str):
        what, do = f"{function!r} stands where the function goes", f"a name is given by name={function!r}"
    else:
        what, do = f"{function!r} stands where the function goes", "put the decorator above a def"
    raise InvalidInput(what, do=do)


def refuse_no_name(name: object) -> None:
    if not isinstance(name, str):
        raise InvalidInput(f"name is {name!r}", do="give a str")


def refuse_no_exceptions(**given: Any) -> None:
    for name, classes in given.items():
        if isinstance(classes, type):
            raise InvalidInput(
                f"{name} is the class {classes.__name__}", do=f"give a list: {name}=[{classes.__name__}]"
            )
        for cls in classes:
            if not isinstance(cls, type) or not issubclass(cls, BaseException):
                raise InvalidInput(f"{name} holds {cls!r}", do="list classes of exceptions there")
