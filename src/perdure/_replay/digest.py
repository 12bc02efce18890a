"""What a call's arguments come to, in a form that does not depend on how they were built. Pure.

Keys and members of sets are put in order; fields of dataclasses that have their default are left out, so
that adding a field with a default changes nothing. Short arguments are their own digest.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_SIMPLE = frozenset({str, int, float, bool, bytes, type(None)})
_SHORT = 24


def digest(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """At most 25 bytes that tell these arguments from others.

    Raises:
        TypeError: an argument has no form that could be compared with a later run's.
    """
    for value in args:
        if type(value) not in _SIMPLE:
            return _shorten(_encode([_canonical(args), _canonical(dict(kwargs))]))
    if kwargs:
        return _shorten(_encode([args, _canonical(dict(kwargs))]))
    return _shorten(_encode(args))


def _shorten(form: bytes) -> bytes:
    # A marker byte tells a short form from a hash of the same bytes.
    return b"=" + form if len(form) <= _SHORT else b"#" + hashlib.blake2b(form, digest_size=_SHORT).digest()


def _canonical(value: Any) -> Any:
    if type(value) in _SIMPLE:
        return value
    if isinstance(value, Mapping):
        return {"map": sorted(([_canonical(k), _canonical(v)] for k, v in value.items()), key=_encode)}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted((_canonical(item) for item in value), key=_encode)}
    if isinstance(value, Enum):
        return _canonical(value.value)
    fields = _fields(value)
    if fields is not None:
        return {"fields": {name: _canonical(item) for name, item in sorted(fields.items())}}
    try:
        return msgspec.to_builtins(value, builtin_types=(bytes,))
    except (TypeError, msgspec.ValidationError):
        raise TypeError(f"an argument of type {type(value).__name__} cannot be compared with a later run's") from None


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass, Struct or pydantic model that differ from their defaults."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if not _is_default(value, f)}
    if isinstance(value, msgspec.Struct):
        found = {}
        for field in msgspec.structs.fields(value):
            item = getattr(value, field.name)
            default = field.default
            if default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
                default = field.default_factory()
            if default is msgspec.NODEFAULT or item != default:
                found[field.name] = item
        return found
    dump = getattr(value, "model_dump", None)
    if dump is not None and hasattr(value, "model_fields_set"):
        return dict(dump(mode="python", exclude_defaults=True))
    return None


def _is_default(value: Any, field: dataclasses.Field[Any]) -> bool:
    if field.default is not dataclasses.MISSING:
        default = field.default
    elif field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    else:
        return False
    return bool(getattr(value, field.name) == default)
