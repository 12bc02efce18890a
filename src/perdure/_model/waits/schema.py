"""Whether a value fits a JSON Schema, as far as annotations produce one. Pure.

Answers come from people and other programs, into processes that may not have the code that asked. Known keywords of the
schema are checked; an unknown keyword is left to the code that gets the answer.

Patterns come from data. They are tried by an engine whose time grows with the text and not with the pattern's tricks;
a pattern which that engine does not know is left to the code as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any
from uuid import UUID

from msgspec import Struct

Json = Any
Schema = Mapping[str, Any]
Path = tuple[str | int, ...]
_DEEPEST = 100
_MOST = 100  # misfits that are told
_LONGEST_PATTERN = 2_000
_PATTERN_BYTES = 1_000_000  # the most memory a compiled pattern may take


class Misfit(Struct, frozen=True):
    """What is wrong with a value, and where: the keys and numbers that lead to it."""

    path: Path
    message: str

    def __str__(self) -> str:
        return f"{_spelled(self.path)}: {self.message}" if self.path else self.message


def misfits(value: Json, schema: Schema) -> list[Misfit]:
    """Everything that is wrong with the value, up to a hundred things; empty when it fits."""
    try:
        return list(islice(_Check(schema).value(value, schema, (), 0), _MOST))
    except (RecursionError, OverflowError):
        return [Misfit((), "it is nested too deeply, or holds a number that JSON cannot hold")]


def misfit(value: Json, schema: Schema) -> str | None:
    """The first thing that is wrong with the value, with its place; None when it fits."""
    found = misfits(value, schema)
    return str(found[0]) if found else None


Found = Iterator[Misfit]


class _Check:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def value(self, value: Json, schema: object, at: Path, depth: int) -> Found:
        if schema is True or schema == {}:
            return
        if schema is False or depth > _DEEPEST or not isinstance(schema, Mapping):
            yield Misfit(at, "it may not be there")
        elif "$ref" in schema:
            yield from self.value(value, self._lookup(schema["$ref"]), at, depth + 1)
        elif (wrong := _type(value, schema) or _choice(value, schema)) is not None:
            yield Misfit(at, wrong)
        else:
            yield from self._any(value, schema, at, depth)
            yield from self._inside(value, schema, at, depth)

    def _inside(self, value: Json, schema: Schema, at: Path, depth: int) -> Found:
        if isinstance(value, str):
            yield from _at(at, _text(value, schema))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from _at(at, _number(value, schema))
        elif isinstance(value, list | tuple):
            yield from self._items(value, schema, at, depth)
        elif isinstance(value, Mapping):
            yield from self._fields(value, schema, at, depth)

    def _lookup(self, ref: str) -> Any:
        found: Any = self._root
        for part in str(ref).lstrip("#/").split("/"):
            found = found.get(part, {}) if isinstance(found, Mapping) else {}
        return found

    def _any(self, value: Json, schema: Schema, at: Path, depth: int) -> Found:
        for part in schema.get("allOf", ()):
            yield from self.value(value, part, at, depth + 1)
        choices = schema.get("anyOf") or schema.get("oneOf") or ()
        problems: list[list[Misfit]] = []
        for part in choices:
            problems.append(list(islice(self.value(value, part, at, depth + 1), _MOST)))
            if not problems[-1]:
                return
        yield from _nearest(problems, at)

    def _items(self, value: Sequence[Json], schema: Schema, at: Path, depth: int) -> Found:
        yield from _at(at, _count(len(value), schema, "Items", "items"))
        first: Sequence[Any] = schema.get("prefixItems", ())
        for number, item in enumerate(value):
            part = first[number] if number < len(first) else schema.get("items", True)
            yield from self.value(item, part, (*at, number), depth + 1)

    def _fields(self, value: Mapping[Any, Json], schema: Schema, at: Path, depth: int) -> Found:
        for name in schema.get("required", ()):
            if name not in value:
                yield Misfit((*at, str(name)), "it is missing")
        known: Mapping[str, Any] = schema.get("properties", {})
        for name, inner in value.items():
            part = known.get(name, schema.get("additionalProperties", True))
            if part is False:
                yield Misfit((*at, str(name)), "it is not one of the known fields")
            else:
                yield from self.value(inner, part, (*at, str(name)), depth + 1)


def _nearest(problems: Sequence[list[Misfit]], at: Path) -> Found:
    """For several forms: the misfit of the one form whose type fits; otherwise that none fits."""
    inside = [found for found in problems if all(len(one.path) > len(at) for one in found)]
    if len(problems) == 1 or len(inside) == 1:
        yield from (inside or problems)[0]
    elif problems:
        yield Misfit(at, f"it fits none of its {len(problems)} forms")


def _at(path: Path, wrong: str | None) -> Found:
    if wrong is not None:
        yield Misfit(path, wrong)


def _spelled(path: Path) -> str:
    """`points[0].x`"""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


# ── one value ────────────────────────────────────────────────────────────────────────────────────

_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "null": ("null", lambda value: value is None),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": ("an integer", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "number": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "string": ("a text", lambda value: isinstance(value, str)),
    "array": ("a list", lambda value: isinstance(value, list | tuple)),
    "object": ("an object", lambda value: isinstance(value, Mapping)),
}


def _type(value: Json, schema: Schema) -> str | None:
    named = schema.get("type")
    wanted = [named] if isinstance(named, str) else list(named or ())
    known = [name for name in wanted if name in _TYPES]
    if not known or any(_TYPES[name][1](value) for name in known):
        return None
    return f"it is not {' or '.join(_TYPES[name][0] for name in known)}: {_shown(value)}"


def _choice(value: Json, schema: Schema) -> str | None:
    choices = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    # 1 is not True here, though Python thinks so.
    if choices is None or any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in choices):
        return None
    return f"it is not one of {', '.join(map(_shown, choices[:20]))}: {_shown(value)}"


def _text(value: str, schema: Schema) -> str | None:
    pattern, form = schema.get("pattern"), schema.get("format")
    if isinstance(pattern, str) and _matches(pattern, value) is False:
        return f"it does not match {_shown(pattern)}: {_shown(value)}"
    if isinstance(form, str) and form in _FORMATS:
        words, reads = _FORMATS[form]
        if not reads(value):
            return f"it is not {words}: {_shown(value)}"
    return _count(len(value), schema, "Length", "characters")


def _number(value: float, schema: Schema) -> str | None:
    if not math.isfinite(value):
        return "it is not a number that JSON can hold"
    for name, (fits, words) in _LIMITS.items():
        limit = schema.get(name)
        if isinstance(limit, int | float) and not fits(value, limit):
            return f"it has to be {words} {limit}: {_shown(value)}"
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and step > 0 and not _is_multiple(value, step):
        return f"it has to be a multiple of {step}: {_shown(value)}"
    return None


_LIMITS: Mapping[str, tuple[Callable[[float, float], bool], str]] = {
    "minimum": (lambda one, limit: one >= limit, "at least"),
    "maximum": (lambda one, limit: one <= limit, "at most"),
    "exclusiveMinimum": (lambda one, limit: one > limit, "above"),
    "exclusiveMaximum": (lambda one, limit: one < limit, "below"),
}


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    return Decimal(str(value)) % Decimal(str(step)) == 0


def _count(count: int, schema: Schema, noun: str, words: str) -> str | None:
    least, most = schema.get(f"min{noun}"), schema.get(f"max{noun}")
    if isinstance(least, int) and count < least:
        return f"it has {count} {words}; at least {least} are needed"
    if isinstance(most, int) and count > most:
        return f"it has {count} {words}; at most {most} are allowed"
    return None


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


# ── patterns and formats ─────────────────────────────────────────────────────────────────────────


def _matches(pattern: str, value: str) -> bool | None:
    """Whether the pattern occurs in the text; None if this engine cannot tell."""
    tries = _tries(pattern)
    if tries is None:
        return None
    try:
        return tries(value)
    except (ValueError, TypeError):
        return None  # a text that is not Unicode


@lru_cache(maxsize=128)
def _tries(pattern: str) -> Callable[[str], bool] | None:
    if len(pattern) > _LONGEST_PATTERN:
        return None
    from jsonschema_rs import Draft202012Validator, RegexOptions

    options = RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    try:
        return Draft202012Validator({"pattern": pattern}, pattern_options=options).is_valid
    except ValueError:
        return None  # another dialect, or too large; its own code will say


def _reads(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def reads(value: str) -> bool:
        try:
            read(value)
        except (ValueError, ArithmeticError):
            return False
        return True

    return reads


def _is_decimal(value: str) -> bool:
    return len(value) <= 1_000 and _reads(Decimal)(value) and Decimal(value).is_finite()


def _fits(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda value: len(value) <= 10_000 and compiled.fullmatch(value) is not None


_NUMBER = r"\d+([.,]\d+)?"
_FORMATS: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "date-time": ("a moment such as 2026-11-17T12:00:00Z", _reads(datetime.fromisoformat)),
    "date": ("a date such as 2026-11-17", _reads(date.fromisoformat)),
    "time": ("a time such as 12:00:00Z", _reads(time.fromisoformat)),
    "uuid": ("a UUID", _reads(UUID)),
    "decimal": ("a decimal number such as 12.50", _is_decimal),
    "duration": (
        "a length of time such as PT1H30M",
        _fits(
            rf"[+-]?P(?=[\dT])({_NUMBER}Y)?({_NUMBER}M)?({_NUMBER}W)?({_NUMBER}D)?"
            rf"(T(?=\d)({_NUMBER}H)?({_NUMBER}M)?({_NUMBER}S)?)?"
        ),
    ),
    "email": ("an email address", _fits(r"[^@\s]{1,200}@[^@\s.]+(\.[^@\s.]+)*")),
    "uri": ("an address such as https://example.org/", _fits(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")),
}
