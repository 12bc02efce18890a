"""Arguments, results and exceptions of durable calls, as bytes and back.

The caller gets the decoded copy on the first run too, so that a replay shows it nothing new. An exception
is rebuilt only if it is builtin, perdure's own, declared or registered and made of storable parts; any
other one is a StepFailed with its name and message, the first time as later.
"""

from __future__ import annotations

import asyncio
import builtins
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from perdure import errors
from perdure._durable.values.exception_parts import RECORDED, advice_for, made_of, parts_of
from perdure._ground.encoding import codec
from perdure._ground.encoding.class_fields import known_to
from perdure._ground.exception_text import message_of
from perdure._ground.traceback_text import TRACE, remember_trace, trace_of
from perdure._replay import digest, is_same
from perdure.errors import InvalidInput, NotStorable, PerdureError, StepFailed

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_TAG = 0xC1


class Signature:
    """The parameters and the result of a function, by its annotations."""

    hints: dict[str, Any]
    returns: Any
    is_method: bool
    names: tuple[str, ...]
    plain: int
    is_spelled_one_way: bool

    def __init__(self, function: Callable[..., Any], *, leave_out: Sequence[str] = ()) -> None:
        try:
            whole = inspect.signature(function)
        except ValueError:  # it is written in C, and says nothing
            name = getattr(function, "__name__", repr(function))
            raise InvalidInput(f"what {name} takes cannot be read", do="write a def that calls it") from None
        self._name = getattr(function, "__name__", "the function")
        self._signature = whole.replace(parameters=[p for p in whole.parameters.values() if p.name not in leave_out])
        self.hints = _hints(function)
        self.returns = self.hints.get("return", Any)
        parameters = list(self._signature.parameters.values())
        self.is_method = bool(parameters) and parameters[0].name in ("self", "cls")
        takes = parameters[1:] if self.is_method else parameters
        self._takes = [p for p in takes if p.kind in _POSITIONAL]
        self._keywords = {p.name: p for p in takes if p.kind is inspect.Parameter.KEYWORD_ONLY}
        self._required = sum(p.default is p.empty for p in self._takes)
        self.names = tuple(p.name for p in self._takes)
        self._needed = {p.name for p in parameters if p.default is p.empty}
        # Every argument can be given by name: then nothing has to be bound.
        self._is_plain = not self.is_method and all(p.kind in _BY_NAME for p in parameters)
        needs_names = any(p.default is p.empty for p in self._keywords.values())
        self._may_be_placed = self._is_plain and not needs_names  # positional arguments alone can be a whole call
        self._types = {p.name: Any if p.kind in _REST else self.hints.get(p.name, Any) for p in parameters}
        self._keepers: dict[str, Callable[[Any], tuple[bytes, Any] | None]] = {}  # of arguments that were given
        self.plain = self._required + self.is_method  # up to so many positional arguments, a call is spelled one way
        self.is_spelled_one_way = self._required == len(parameters)  # and it takes no others

    def spelled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call however it was written: by position where it can be, without what is the default, without self."""
        given, named = list(args[1:] if self.is_method else args), dict(kwargs)
        if named:
            self._by_position(given, named)
            for name, parameter in self._keywords.items():
                if name in named and is_same(named[name], parameter.default):
                    del named[name]
        if len(given) <= len(self._takes):
            while len(given) > self._required and is_same(given[-1], self._takes[len(given) - 1].default):
                given.pop()
        return tuple(given), named

    def _by_position(self, given: list[Any], named: dict[str, Any]) -> None:
        for number in range(len(given), len(self._takes)):
            parameter = self._takes[number]
            if parameter.name in named:
                given.append(named.pop(parameter.name))
            elif parameter.default is parameter.empty or not any(p.name in named for p in self._takes[number:]):
                return
            else:
                given.append(parameter.default)

    def in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call however it was written: by position up to the first argument left out, by name from there on."""
        bound = self._signature.bind(*args, **kwargs)
        return bound.args, bound.kwargs

    def encode_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        return self.keep_arguments(args, kwargs)[0]

    def keep_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
        """The call's arguments by name, as bytes and read back from them.

        Raises:
            TypeError: they do not fit the function.
            NotStorable: the path begins with the argument's name.
        """
        if self._may_be_placed and not kwargs and self._required <= len(args) <= len(self._takes):
            given: Iterable[tuple[str, Any]] = zip(self.names, args)  # noqa: B905  to say so makes it four times as dear
        else:
            try:
                given = self._signature.bind(*args, **kwargs).arguments.items()
            except TypeError as problem:
                raise TypeError(f"{self._name}(): {problem}") from None
        encoded, copies = {}, {}
        for name, value in given:
            keep = self._keepers.get(name)
            if keep is None:
                keep = self._keepers[name] = codec.keeper_of(self._types[name])
            kept = keep(value)
            encoded[name], copies[name] = self._kept(name, value) if kept is None else kept
        return codec.encode_own(encoded), copies

    def _kept(self, name: str, value: Any) -> tuple[bytes, Any]:
        try:
            return codec.round_trip(value, self._types[name])
        except NotStorable as error:
            raise NotStorable(f"{name}.{error.path}".rstrip("."), error.problem, do=error.do) from None

    def decode_arguments(self, data: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as the function takes them now.

        Raises:
            TypeError: it takes others than it was called with.
        """
        decoded: dict[str, Any] = {}
        for name, value in codec.decode(data).items():
            if name not in self._types:
                raise TypeError(f"it takes no argument {name!r} any more")
            decoded[name] = codec.decode(value, self._types[name])
        return self.spread(decoded)

    def decode_like(self, data: bytes, other: Signature) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same for a function that is called in place of another one: a parameter it does not annotate gets the
        type the other function gives this name, if the value can still be decoded so.

        Raises:
            TypeError: it takes others than it was called with.
        """
        args, kwargs = self.decode_arguments(data)
        plain = {n: t for n, t in other._types.items() if n in self._types and n not in self.hints and t is not Any}
        if not plain:
            return args, kwargs
        given = self._signature.bind_partial(*args, **kwargs).arguments
        recorded = codec.decode(data)
        for name in given.keys() & plain.keys():
            with suppress(InvalidInput):
                given[name] = codec.decode(recorded[name], plain[name])
        return self.spread(given)

    def spread(self, decoded: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments by name as the function takes them.

        Raises:
            TypeError: it takes others.
        """
        if self._is_plain and decoded.keys() >= self._needed:
            return (), decoded
        bound = self._signature.bind_partial()
        bound.arguments.update(decoded)
        self._signature.bind(*bound.args, **bound.kwargs)
        return bound.args, bound.kwargs

    def compared(self, data: bytes) -> bytes:
        """The comparable form of these arguments, however they were given; `self` is left out.

        Raises:
            TypeError: an argument cannot be compared, or is no longer a parameter.
        """
        args, kwargs = self.decode_arguments(data)
        given = self._signature.bind_partial(*args, **kwargs).arguments.items()
        defaults = {name: parameter.default for name, parameter in self._signature.parameters.items()}
        return digest((), {name: value for name, value in given if not is_same(value, defaults[name])})

    @property
    def required(self) -> list[str]:
        """The names of what has to be given."""
        rest = {p.name for p in self._signature.parameters.values() if p.kind in _REST}
        return [name for name in self.types if name in self._needed and name not in rest]

    @property
    def takes_more(self) -> bool:
        """True if it takes arguments without a name, like *args and **kwargs."""
        return any(p.kind in _REST for p in self._signature.parameters.values())

    @property
    def types(self) -> dict[str, Any]:
        """The parameters that can be given by name, with their types."""
        return dict(list(self._types.items())[1 if self.is_method else 0 :])


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

_BUILTIN: dict[str, type[BaseException]] = {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, BaseExceptionGroup)
}
# Raised by a step that awaited something which was cancelled, not by a cancellation of the step.
_BUILTIN["CancelledError"] = asyncio.CancelledError
_OURS: dict[str, type[PerdureError]] = {
    name: value for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, PerdureError)
}


# The exceptions declared by steps and effects of this process (raises=, failed_on=), by name: the class of each module
# that has one.
_declared_here: dict[str, dict[str, type[BaseException]]] = {}


def declare(classes: Iterable[type[BaseException]]) -> None:
    """Have these rebuilt also when they end a whole task, which declares nothing itself."""
    for cls in classes:
        _declared_here.setdefault(cls.__qualname__, {})[cls.__module__] = cls


def declared_here() -> list[type[BaseException]]:
    """The exceptions that any call of this process declares; if two have one name, neither."""
    return [cls for found in _declared_here.values() if len(found) == 1 for cls in found.values()]


_NOT_VALUES = ("what", "kept", "do", RECORDED, TRACE)


def encode_error(error: BaseException, declared: Sequence[type[BaseException]], *, has_trace: bool = True) -> bytes:
    """Encode an exception: its name and message, where it was raised, and the parts it can be built from again."""
    name = type(error).__qualname__
    told: dict[str, Any] = {"type": name, "message": _printable(error), "args": None}
    if has_trace and (trace := trace_of(error)):
        told["traceback"] = trace
    try:
        return codec.encode(told | _parts(error, name, declared))
    except NotStorable:
        return codec.encode(told)


def _parts(error: BaseException, name: str, declared: Sequence[type[BaseException]]) -> dict[str, Any]:
    if _OURS.get(name) is type(error):
        assert isinstance(error, PerdureError)
        values = {key: value for key, value in vars(error).items() if key not in _NOT_VALUES}
        return {"ours": [error.what, error.kept, error.do, values]}
    if _declared(name, declared) is type(error):
        return parts_of(error)
    if type(error) is ExceptionGroup:
        return {
            "group": [error.message, [encode_error(member, declared, has_trace=False) for member in error.exceptions]]
        }
    if type(error) in known_to(Any).name_of:
        return {"whole": codec.encode(error)}
    return {}


def decode_error(data: bytes, declared: Sequence[type[BaseException]]) -> BaseException:
    """The exception as the caller gets it, live and in replay alike."""
    found = codec.decode(data)
    error = _decoded(found, declared)
    remember_trace(error, str(found.get("traceback") or ""))
    with suppress(AttributeError, TypeError):  # a class that takes no more attributes
        setattr(error, RECORDED, data)
    return error


def _decoded(found: dict[str, Any], declared: Sequence[type[BaseException]]) -> BaseException:
    try:
        made = _rebuilt(found, declared)
    except Exception:  # its constructor wants something else than its args, or its class is gone
        made = None
    return made if isinstance(made, BaseException) else StepFailed(found["type"], found["message"], advice_for(found))


def recorded_as(error: BaseException) -> bytes | None:
    """The record the exception was made from, if there is one."""
    data = getattr(error, RECORDED, None)
    return data if isinstance(data, bytes) else None


def _rebuilt(found: dict[str, Any], declared: Sequence[type[BaseException]]) -> Any:
    if "ours" in found:
        what, kept, do, values = found["ours"]
        cls = _OURS[found["type"]]
        error = cls.__new__(cls)
        PerdureError.__init__(error, what, kept=kept, do=do)
        error.__dict__.update(values)
        return error
    if "whole" in found:
        return codec.decode(found["whole"])
    if "group" in found:
        message, members = found["group"]
        return ExceptionGroup(message, [_decoded(codec.decode(member), declared) for member in members])
    declared_cls = _declared(found["type"], declared) if found["args"] is not None else None
    return None if declared_cls is None else made_of(declared_cls, found)


def _declared(name: str, declared: Sequence[type[BaseException]]) -> type[BaseException] | None:
    """The class of this name that is declared, or derived from one that is, as far as it is imported here."""
    for cls in declared:
        if cls.__qualname__ == name:
            return cls
    if name in _BUILTIN:
        return _BUILTIN[name]
    derived = {one for cls in declared if cls.__module__ != "builtins" for one in _derived(cls, name)}
    return derived.pop() if len(derived) == 1 else None


def _derived(cls: type[BaseException], name: str) -> Iterator[type[BaseException]]:
    for one in type.__subclasses__(cls):
        if one.__qualname__ == name:
            yield one
        yield from _derived(one, name)


def _printable(error: BaseException) -> str:
    return message_of(error).encode("utf-8", "backslashreplace").decode()


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def reader_for(as_type: Any) -> Callable[[bytes], Any]:
    """`codec.decode` for one annotation, without looking its decoder up each time."""
    decode = codec.decoder_for(as_type).decode

    def read(data: bytes) -> Any:
        if data[0] != _TAG:
            try:
                return decode(data)
            except Exception:
                return codec.decode(data, as_type)  # which says what is wrong
        return codec.decode(data, as_type)

    return read
