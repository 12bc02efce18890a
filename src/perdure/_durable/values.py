"""Arguments, results and exceptions of durable calls, as bytes and back.

The caller gets the decoded copy on the first run too, so that a replay shows it nothing new. An exception
is rebuilt only if it is builtin, declared or registered and made of storable arguments; any other one is
a StepFailed with its name and message, the first time as later.
"""

from __future__ import annotations

import builtins
import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any

from perdure._ground import codec
from perdure.errors import NotStorable, StepFailed


class Signature:
    """What a function takes and returns, by its annotations."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = inspect.signature(function)
        self.hints = _hints(function)
        self.returns = self.hints.get("return", Any)
        names = list(self._signature.parameters)
        self.is_method = bool(names) and names[0] in ("self", "cls")

    def encode_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The call's arguments by name.

        Raises:
            TypeError: they do not fit the function.
            NotStorable: the path begins with the argument's name.
        """
        bound = self._signature.bind(*args, **kwargs)
        encoded = {}
        for name, value in bound.arguments.items():
            try:
                encoded[name] = codec.encode(value, self._type_of(name))
            except NotStorable as error:
                raise NotStorable(f"{name}.{error.path}".rstrip("."), error.problem, do=error.do) from None
        return codec.encode(encoded)

    def decode_arguments(self, data: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        bound = self._signature.bind_partial()
        for name, value in codec.decode(data).items():
            bound.arguments[name] = codec.decode(value, self._type_of(name))
        return bound.args, bound.kwargs

    def _type_of(self, name: str) -> Any:
        kind = self._signature.parameters[name].kind
        if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            return Any
        return self.hints.get(name, Any)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations that can be used: names that cannot be resolved and type variables count as Any."""
    try:
        found = typing.get_type_hints(function)
    except Exception:
        return {}
    return {name: hint for name, hint in found.items() if not _has_variables(hint)}


def _has_variables(hint: Any) -> bool:
    return isinstance(hint, typing.TypeVar) or any(_has_variables(part) for part in typing.get_args(hint))


# ── exceptions ───────────────────────────────────────────────────────────────────────────────────

_BUILTIN = {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, ExceptionGroup)
}


def encode_error(error: BaseException, declared: Sequence[type[BaseException]]) -> bytes:
    name = type(error).__qualname__
    args: list[Any] | None = list(error.args)
    if _class_named(name, declared) is not type(error):
        args = None
    try:
        return codec.encode({"type": name, "message": str(error), "args": args})
    except NotStorable:
        return codec.encode({"type": name, "message": _printable(error), "args": None})


def decode_error(data: bytes, declared: Sequence[type[BaseException]]) -> BaseException:
    """The exception as the caller gets it, live and in replay alike."""
    found = codec.decode(data)
    cls = _class_named(found["type"], declared) if found["args"] is not None else None
    if cls is not None:
        try:
            return cls(*found["args"])
        except Exception:  # its constructor wants something else than its args
            return StepFailed(found["type"], found["message"])
    return StepFailed(found["type"], found["message"])


def _class_named(name: str, declared: Sequence[type[BaseException]]) -> type[BaseException] | None:
    for cls in declared:
        if cls.__qualname__ == name:
            return cls
    return _BUILTIN.get(name)


def _printable(error: BaseException) -> str:
    return str(error).encode("utf-8", "backslashreplace").decode()
