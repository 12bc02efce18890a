"""The digest of a call's arguments, in a form that does not depend on how they were built. Pure.

Keys and members of sets are put in order; fields that have their default are left out, so that adding a
field with a default changes nothing. Short arguments are their own digest, so that a divergence can name
them.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

import msgspec

_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder().decode
_SIMPLE = frozenset({str, int, float, bool, bytes, type(None)})
# The value of a subclass's instance without its additions; its own __str__ could return anything.
_BARE: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
}
_MISSING = object()
_SHORT = 24
# The one byte that begins no msgpack value: what follows has keywords.
_KEYWORDS = b"\xc1"
# A digest that begins with this is the arguments themselves.
SPELLED = b"="


def digest(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """At most 25 bytes that tell these arguments from others.

    Raises:
        TypeError: an argument cannot be compared with that of a later attempt.
    """
    try:
        if not kwargs:
            if _SIMPLE.issuperset(map(type, args)):
                form = _encode(args)
                return SPELLED + form if len(form) <= _SHORT else _shorten(form)
            return _shorten(_form(list(args)))
        return _shorten(_KEYWORDS + _form([list(args), dict(kwargs)]))
    except (OverflowError, UnicodeEncodeError):
        return _shorten(_KEYWORDS + _encode(_canonical([list(args), dict(kwargs)])))
    except RecursionError:
        raise TypeError("an argument is nested too deeply, or holds itself") from None


def plain_digest(args: tuple[Any, ...]) -> bytes | None:
    """The digest of a few plain values, given by position, which also spells them; None of all else."""
    for value in args:
        if type(value) not in _SIMPLE:
            return None
    try:
        form = _encode(args)
    except (OverflowError, UnicodeEncodeError):
        return None
    return SPELLED + form if len(form) <= _SHORT else None


def spell(asked: bytes) -> str:
    """The arguments as a person would write them, if the digest is short enough to hold them."""
    if asked[:1] != SPELLED or asked[1:2] == _KEYWORDS:
        return "…"
    try:
        return ", ".join(map(repr, _decode(asked[1:])))
    except Exception:
        return "…"


def arguments_in(asked: bytes) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments, by position and by name, if the digest is short enough to hold them."""
    if asked[:1] != SPELLED:
        return None
    try:
        if asked[1:2] != _KEYWORDS:
            return list(_decode(asked[1:])), {}
        args, kwargs = _decode(asked[2:])
        return list(args), dict(kwargs)
    except Exception:  # a digest is bytes from a store
        return None


def _shorten(form: bytes) -> bytes:
    # A marker byte tells a short form from a hash of the same bytes.
    return SPELLED + form if len(form) <= _SHORT else b"#" + hashlib.blake2b(form, digest_size=_SHORT).digest()


def _form(value: object) -> bytes:
    """Plain data is passed to msgpack directly; only values it would change are walked in Python."""
    try:
        data = _encode(value)
        if _decode(data) == value:
            return data
    except Exception:  # whatever msgspec or an __eq__ disliked: the walk decides
        pass
    return _encode(_canonical(value))


def _canonical(value: object) -> Any:
    kind = type(value)
    if kind in _SIMPLE:
        return _odd(value) if kind in (int, str) else value
    if isinstance(value, Mapping):
        if all(type(key) is str for key in value):
            return {key: _canonical(item) for key, item in value.items()}
        return {"map": sorted(([_canonical(k), _canonical(v)] for k, v in value.items()), key=_encode)}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted((_canonical(item) for item in value), key=_encode)}
    if isinstance(value, Enum):
        return _canonical(value.value)
    if isinstance(value, PurePath):
        return str(value)
    unit = getattr(value, "unit_identity", None)
    if type(unit) is str:
        return {"unit": unit}  # a live thing is told from others by its name, before a crash and after it
    if isinstance(value, type):
        return {"class": value.__qualname__}
    for plain, bare in _BARE.items():
        if isinstance(value, plain):  # of the user's own class: written as its parts, with its name
            return _canonical(bare(value))
    fields = _fields(value)
    if fields is not None:
        return {"fields": {name: _canonical(item) for name, item in fields}}
    try:
        return msgspec.to_builtins(value, builtin_types=(bytes,))
    except Exception:
        raise TypeError(f"{_a(value)} cannot be compared with a later run's") from None


def _odd(value: Any) -> Any:
    """Ints and texts that msgpack does not take."""
    if type(value) is int:
        return value if -(2**63) <= value < 2**64 else {"int": str(value)}
    return value if value.isascii() else {"text": value.encode("utf-8", "surrogatepass")}


def _a(value: object) -> str:
    name = getattr(value, "__name__", "")
    return f"an argument of type {type(value).__name__}" + (f" ({name})" if name else "")


def _fields(value: object) -> Iterator[tuple[str, Any]] | None:
    """The fields of a dataclass, Struct, attrs class or pydantic model that differ from their defaults."""
    if dataclasses.is_dataclass(value):
        return _told(value, ((f.name, f.default, f.default_factory) for f in dataclasses.fields(value)))
    if isinstance(value, msgspec.Struct):
        return _told(value, ((f.name, f.default, f.default_factory) for f in msgspec.structs.fields(value)))
    if hasattr(value, "__attrs_attrs__"):
        return _told(value, ((a.name, *_attrs_default(a.default)) for a in value.__attrs_attrs__))
    dump = getattr(value, "model_dump", None)
    if dump is not None and hasattr(value, "model_fields_set"):
        told = dump(mode="python", exclude_defaults=True)
        return iter(told.items() if isinstance(told, dict) else [("root", told)])  # a RootModel is what it holds
    return None


def _attrs_default(default: Any) -> tuple[Any, Any]:
    if type(default).__name__ == "Factory":
        return _MISSING, _MISSING if default.takes_self else default.factory
    return (_MISSING if getattr(default, "name", "") == "NOTHING" else default), _MISSING


_NO_DEFAULT = (_MISSING, dataclasses.MISSING, msgspec.NODEFAULT)


def _told(value: object, fields: Iterator[tuple[str, Any, Any]]) -> Iterator[tuple[str, Any]]:
    for name, fixed, factory in fields:
        item = getattr(value, name, _MISSING)
        if item is _MISSING:
            continue  # a field that is not made by __init__, and was never set
        default = fixed if any(factory is none for none in _NO_DEFAULT) else factory()
        if any(default is none for none in _NO_DEFAULT) or not is_same(item, default):
            yield name, item


def is_same(one: object, other: object) -> bool:
    """True if two values are equal and of one type; values that cannot be compared are not."""
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:
        return False
