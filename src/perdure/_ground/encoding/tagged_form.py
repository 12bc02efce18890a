"""The tagged form: msgpack that says what msgpack alone cannot.

Tuples, sets, dates, decimals, paths, large ints and instances of known classes are written as extension
types, each with a code of its own. It is the slow way, a walk in Python, taken only for values that
the plain form would change; the lists and dicts inside them that it would not change are left to it.

Owns the walk, the codes and the path to what cannot be stored. Which form a value takes is decided in
codec.py; which classes are known, in class_fields.py.
"""

from __future__ import annotations

import datetime as dt
import reprlib
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from io import IOBase
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from msgspec.msgpack import Ext

from perdure._ground.encoding import class_fields as shapes
from perdure._ground.encoding.class_fields import Known
from perdure._ground.signal_handlers import was_raised_by_a_handler
from perdure.errors import InvalidInput, NotStorable

# These numbers never change: a stored record can contain any of them.
TUPLE, SET, FROZENSET, DATE, TIME, NAIVE_DATETIME, TIMEDELTA, DECIMAL, UUID_CODE, LARGE_INT, PAIRS, SHAPE = range(1, 13)
PATH = 13

_encode = msgspec.msgpack.Encoder().encode
_decode_plain = msgspec.msgpack.Decoder().decode
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def plain(value: object) -> bytes | None:
    """The value in plain msgpack; None if it would not be read back equal."""
    try:
        data = _encode(value)
        return data if _decode_plain(data) == value else None
    except Exception as error:  # whatever msgspec or an __eq__ disliked: the tagged form decides
        if was_raised_by_a_handler(error):
            raise
        return None


def write(value: object, known: Known) -> bytes:
    """The value in tagged form.

    Raises:
        NotStorable: something in it is not data; the path leads to it.
    """
    try:
        return _encode(_Walk(known).tag(value))
    except _Refused as refused:
        raise NotStorable(refused.spelled_path(), refused.problem, do=refused.do) from None
    except RecursionError:
        raise NotStorable("", "it is nested too deeply", do="keep a deep tree as a flat list of its nodes") from None


def read(data: bytes | memoryview, known: Known) -> Any:
    """The value that `write` was given. Bytes that are none of ours raise ValueError, or what a class raises."""
    return _decoder(known, lenient=False).decode(data)


def show(data: bytes | memoryview, known: Known) -> Any:
    """Like `read`, but an instance of an unknown class becomes the dict of its fields."""
    return _decoder(known, lenient=True).decode(data)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


class _Refused(Exception):
    def __init__(self, problem: str, do: str = "") -> None:
        self.problem, self.do = problem, do
        self.path: list[str] = []  # from the culprit outwards

    def spelled_path(self) -> str:
        return "".join(reversed(self.path)).removeprefix(".")


class _Walk:
    """One walk over one value."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._inside: set[int] = set()  # the containers on the way from the top to here

    def tag(self, value: Any) -> Any:
        kind = type(value)
        if kind in _NATIVE or (kind is str and value.isascii()):
            return value
        if (kind is dict or kind is list) and (unchanged := plain(value)):
            return msgspec.Raw(unchanged)
        if kind in self._known.name_of:
            return self._shape(value)
        writer = _WRITERS.get(kind) or _inherited_writer(kind)
        return writer(self, value)

    def text(self, value: str) -> str:
        exact = str.__str__(value)
        try:
            exact.encode()
        except UnicodeEncodeError as error:
            raise _Refused(
                f"its character {error.start} is half of a surrogate pair, which is not text",
                "clean it with s.encode(errors='replace').decode(), or store bytes",
            ) from None
        return exact

    def integer(self, value: int) -> int | Ext:
        exact = int.__int__(value)
        if -(2**63) <= exact < 2**64:
            return exact
        return Ext(LARGE_INT, exact.to_bytes(exact.bit_length() // 8 + 1, "big", signed=True))

    def moment(self, value: dt.datetime) -> dt.datetime | Ext:
        if value.utcoffset() is None:
            return _ext(NAIVE_DATETIME, value.isoformat())
        try:
            return _EPOCH + (value - _EPOCH)
        except OverflowError:
            raise _Refused("in UTC its year is before 1 or after 9999") from None

    def items(self, value: Any) -> list[Any]:
        self._enter(value)
        tagged: list[Any] = []
        try:
            for item in value:
                tagged.append(self.tag(item))
        except _Refused as refused:
            refused.path.append(f"[{len(tagged)}]")
            raise
        self._leave(value)
        return tagged

    def members(self, value: object) -> list[Any]:
        # Sorted, so that equal sets are equal bytes whatever order they happen to be in.
        return sorted(self.items(value), key=_encode)

    def pairs(self, value: dict[Any, Any]) -> dict[Any, Any] | Ext:
        self._enter(value)
        keys, items = [], []
        for key, item in value.items():
            try:
                keys.append(self.tag(key))
                items.append(self.tag(item))
            except _Refused as refused:
                refused.path.append(_step_to(key))
                raise
        self._leave(value)
        if any(type(key) is Ext for key in keys):
            return _ext(PAIRS, [keys, items])
        try:
            tagged = dict(zip(keys, items, strict=True))
        except TypeError:
            raise _Refused("one of its keys would come back as a dict", "register the class of the key") from None
        if len(tagged) < len(keys):
            raise _Refused("two of its keys would come back as one", "make the keys plain text or numbers")
        return tagged

    def plain_enum(self, value: Enum) -> Any:
        return self.tag(value.value)

    def plain_fields(self, value: object) -> dict[Any, Any] | Ext:
        """An instance of a class we do not know: a map of its fields, which comes back as a dict."""
        fields = shapes.fields_of(value)
        if fields is None:
            raise _Refused(f"{_a(type(value))} is not data", _hint_for(value))
        self._refuse_stranger_in_the_family(type(value))
        return self._fields(value, fields)

    def _shape(self, value: Any) -> Ext:
        cls = type(value)
        if cls in self._known.unclear:
            raise _Refused(f"two classes are called {cls.__qualname__!r}", "register one of them under another name")
        name = self._known.name_of[cls]
        if isinstance(value, Enum):
            return _ext(SHAPE, [name, self.tag(value.value)])
        content: list[Any] = [name, self._fields(value, shapes.fields_of(value) or {})]
        if shapes.is_pydantic(cls):
            content.append(sorted(value.model_fields_set))
        return _ext(SHAPE, content)

    def _fields(self, value: object, fields: dict[Any, Any]) -> dict[Any, Any] | Ext:
        self._enter(value)
        tagged = self.pairs(fields)
        self._leave(value)
        return tagged

    def _refuse_stranger_in_the_family(self, cls: type[Any]) -> None:
        # Stored as its base it would lose fields; stored as a map it would break the annotation of its base.
        base = next((base for base in cls.__mro__[1:] if base in self._known.name_of), None)
        if base is not None:
            raise _Refused(
                f"{_a(cls)} stands where {_a(base)} is known, and is not registered itself",
                f"register {cls.__qualname__}, or name it in the annotation",
            )

    def _enter(self, container: object) -> None:
        if id(container) in self._inside:
            raise _Refused("it contains itself", "store each part once, and refer to it by a name")
        self._inside.add(id(container))

    def _leave(self, container: object) -> None:
        self._inside.remove(id(container))


def _ext(code: int, content: object) -> Ext:
    return Ext(code, _encode(content))


_NATIVE = frozenset({type(None), bool, float, bytes})

_WRITERS: dict[type[Any], Callable[[_Walk, Any], Any]] = {
    str: _Walk.text,
    int: _Walk.integer,
    float: lambda walk, value: float.__float__(value),
    bytes: lambda walk, value: bytes(memoryview(value)),
    bytearray: lambda walk, value: bytes(value),
    memoryview: lambda walk, value: bytes(value),
    list: _Walk.items,
    dict: _Walk.pairs,
    tuple: lambda walk, value: _ext(TUPLE, walk.items(value)),
    set: lambda walk, value: _ext(SET, walk.members(value)),
    frozenset: lambda walk, value: _ext(FROZENSET, walk.members(value)),
    dt.datetime: _Walk.moment,
    dt.date: lambda walk, value: _ext(DATE, value.isoformat()),
    dt.time: lambda walk, value: _ext(TIME, value.isoformat()),
    dt.timedelta: lambda walk, value: _ext(TIMEDELTA, [value.days, value.seconds, value.microseconds]),
    Decimal: lambda walk, value: _ext(DECIMAL, str(value)),
    UUID: lambda walk, value: Ext(UUID_CODE, value.bytes),
    Path: lambda walk, value: _ext(PATH, walk.text(str(value))),
}


def _inherited_writer(kind: type[Any]) -> Callable[[_Walk, Any], Any]:
    """The form of an unknown class: an Enum as its value, a subclass of a builtin as that builtin."""
    if issubclass(kind, Enum):
        return _Walk.plain_enum
    return next((_WRITERS[base] for base in kind.__mro__ if base in _WRITERS), _Walk.plain_fields)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────

_READERS: dict[int, Callable[[Any], Any]] = {
    TUPLE: tuple,
    SET: set,
    FROZENSET: frozenset,
    DATE: dt.date.fromisoformat,
    TIME: dt.time.fromisoformat,
    NAIVE_DATETIME: dt.datetime.fromisoformat,
    TIMEDELTA: lambda parts: dt.timedelta(*parts),
    DECIMAL: Decimal,
    PATH: Path,
    PAIRS: lambda columns: dict(zip(*columns, strict=True)),
}


@lru_cache(maxsize=512)
def _decoder(known: Known, *, lenient: bool) -> msgspec.msgpack.Decoder[Any]:
    def read_tag(code: int, body: memoryview) -> Any:
        if code == LARGE_INT:
            return int.from_bytes(body, "big", signed=True)
        if code == UUID_CODE:
            return UUID(bytes=bytes(body))
        content = decoder.decode(body)
        if code == SHAPE:
            return _read_shape(known, lenient, *content)
        return _READERS[code](content)

    decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(ext_hook=read_tag)
    return decoder


def _read_shape(known: Known, lenient: bool, name: str, content: Any, given: list[str] | None = None) -> Any:
    cls = known.class_of.get(name)
    if cls is None:
        if lenient:
            return content
        raise InvalidInput(
            f"the record holds a {name!r}, and no class of that name is known here",
            kept="the record, unread and unchanged",
            do=f"import the module that registers it, or call perdure.types.register(cls, name={name!r})",
        )
    try:
        return cls(content) if issubclass(cls, Enum) else shapes.rebuild(cls, content, given or ())
    except Exception as error:
        if lenient:
            return content
        raise InvalidInput(
            f"the record holds a {name!r} that its class does not accept: {error}",
            kept="the record, unread and unchanged",
            do="give new fields a default, and keep what old records need",
        ) from error


# ── naming what is wrong ─────────────────────────────────────────────────────────────────────────


def _step_to(key: object) -> str:
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{reprlib.repr(key)}]"


def _a(cls: type[Any]) -> str:
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _hint_for(value: object) -> str:
    if hasattr(value, "__await__"):
        return "await it first, and store its result"
    if hasattr(value, "tolist"):
        return "store value.tolist(), or a file and its name"
    if isinstance(value, IOBase):
        return "store its path, or what is in it"
    if hasattr(value, "__next__") or isinstance(value, range):
        return "store list(value)"
    if callable(value):
        return "store its name, and look the function up by it"
    return (
        "store what it is made from (an address, an id) and make it again after a restart; "
        "a class that only holds data can be a dataclass"
    )
