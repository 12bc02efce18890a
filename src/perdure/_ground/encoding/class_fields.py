"""Take objects of known kinds of classes apart into fields, and put them together again.

A shape is a dataclass, a msgspec Struct, a pydantic model, an attrs class, a NamedTuple or an Enum.
Its name in stored bytes is looked up here and nowhere else: among the classes that were registered
and those that the reader's own annotation mentions. A name found in data never leads to an import.

Owns the questions "do we know this class?" and "what are its fields?". How they become bytes is in
tagged_form.py and codec.py.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, overload

import msgspec
from msgspec import Struct

from perdure.errors import InvalidInput

C = TypeVar("C", bound=type[Any])

_registered: dict[str, type[Any]] = {}


class Known(Struct, frozen=True, eq=False):
    """The classes a value can be made of, by class and by name; `unclear` ones share their name with another."""

    name_of: Mapping[type[Any], str]
    class_of: Mapping[str, type[Any]]
    unclear: Collection[type[Any]] = ()


@overload
def register(cls: C, *, name: str | None = None) -> C: ...
@overload
def register(cls: None = None, *, name: str | None = None) -> Callable[[C], C]: ...


def register(cls: C | None = None, *, name: str | None = None) -> C | Callable[[C], C]:
    """Let instances of a class be stored anywhere and come back as what they were; usable as a decorator.

    The name is part of the stored bytes, so give one if the class may be renamed. Without it, it is the class's
    qualified name, without the module: a script's `__main__` is another module elsewhere. Registering a class again
    after its module was reloaded replaces it.

    Raises:
        InvalidInput: another class has that name, or this one has no fields we could take apart.
    """
    if cls is None:
        return lambda decorated: register(decorated, name=name)
    if not is_shape(cls):
        raise InvalidInput(
            f"{cls!r} cannot be registered: it has no fields we know how to read",
            do="make it a dataclass, a msgspec Struct, a pydantic model, an attrs class, a NamedTuple or an Enum",
        )
    chosen = name or cls.__qualname__
    taken = _registered.get(chosen)
    if taken is not None and not _is_same_definition(taken, cls):
        raise InvalidInput(
            f"the name {chosen!r} is taken by {taken.__module__}.{taken.__qualname__}",
            do=f"register {cls.__module__}.{cls.__qualname__} with a name of its own",
        )
    _registered[chosen] = cls
    known_to.cache_clear()
    return cls


def _is_same_definition(one: type[Any], other: type[Any]) -> bool:
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


# ── which classes we know ────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=512)
def known_to(as_type: object) -> Known:
    """The registered classes and those the annotation mentions, each with all that its fields mention."""
    found: set[type[Any]] = set()
    for root in (*_registered.values(), as_type):
        _gather(root, found)
    name_of = {cls: cls.__qualname__ for cls in found} | {cls: name for name, cls in _registered.items()}
    class_of: dict[str, type[Any]] = {}
    unclear: set[type[Any]] = set()
    for cls, name in name_of.items():
        other = class_of.setdefault(name, cls)
        if other is not cls:
            unclear |= {cls, other}
    unclear -= set(_registered.values())
    return Known(name_of, {name: cls for name, cls in class_of.items() if cls not in unclear} | _registered, unclear)


def _gather(hint: object, found: set[type[Any]]) -> None:
    for part in (typing.get_origin(hint), getattr(hint, "__value__", None), *typing.get_args(hint)):
        if part is not None:
            _gather(part, found)
    if not isinstance(hint, type) or hint in found or not (is_shape(hint) or typing.is_typeddict(hint)):
        return
    if is_shape(hint):
        found.add(hint)
    for inner in _hints_of(hint).values():
        _gather(inner, found)


def _hints_of(cls: type[Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception:  # an annotation can name anything; then the class is known and its fields are not
        return {}


def is_shape(cls: type[Any]) -> bool:
    return issubclass(cls, (msgspec.Struct, Enum)) or is_pydantic(cls) or _field_names(cls) is not None


def is_pydantic(cls: object) -> bool:
    # By its attributes: pydantic is the user's dependency, and we never import it.
    return hasattr(cls, "__pydantic_core_schema__") and hasattr(cls, "model_construct")


def _field_names(cls: type[Any]) -> tuple[str, ...] | None:
    if issubclass(cls, msgspec.Struct):
        return cls.__struct_fields__
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    if hasattr(cls, "__attrs_attrs__"):
        return tuple(field.name for field in cls.__attrs_attrs__)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return tuple(cls._fields)
    return None


# ── apart and together ───────────────────────────────────────────────────────────────────────────


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of a shape's instance, by their Python names; None if it is none (an Enum has a value, not fields).

    Private attributes and cached properties are not fields, and are not stored; nor are fields that were never set.
    """
    cls = type(value)
    if is_pydantic(cls):
        held = vars(value)
        return {name: held[name] for name in cls.model_fields if name in held} | (value.model_extra or {})
    names = _field_names(cls)
    return None if names is None else {name: getattr(value, name) for name in names if hasattr(value, name)}


def is_wholly_set(model: Any) -> bool:
    """True if every field of a pydantic model was given; `exclude_unset` needs the difference, so it is kept."""
    return bool(model.model_fields_set >= type(model).model_fields.keys())


def rebuild(cls: type[Any], fields: dict[str, Any], given: Collection[str]) -> Any:
    """An instance of the class with these fields; what the class no longer has is left out.

    `given` names the fields that were set on a pydantic model. Models are not validated again: they
    come back as they were stored.
    """
    if is_pydantic(cls):
        return cls.model_construct(_fields_set=set(given), **fields)
    if hasattr(cls, "__attrs_attrs__"):
        return cls(**{f.alias: fields[f.name] for f in cls.__attrs_attrs__ if f.init and f.name in fields})
    if dataclasses.is_dataclass(cls):
        return _rebuild_dataclass(cls, fields)
    return cls(**{name: fields[name] for name in _field_names(cls) or () if name in fields})


def _rebuild_dataclass(cls: type[Any], fields: dict[str, Any]) -> Any:
    has = [field for field in dataclasses.fields(cls) if field.name in fields]
    made = cls(**{field.name: fields[field.name] for field in has if field.init})
    for field in has:
        if not field.init:
            object.__setattr__(made, field.name, fields[field.name])
    return made
