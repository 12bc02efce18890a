"""Whether a value fits a JSON Schema: as much of it as annotations are turned into. Pure.

Answers come from people and other programs, into processes that do not have the code whose question it is.
What is told about the schema is checked; a keyword we do not know is left to the code that gets the answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any
from uuid import UUID

Json = Any
Schema = Mapping[str, Any]
_DEEPEST = 100

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list | tuple),
    "object": lambda value: isinstance(value, Mapping),
}
_FORMATS: Mapping[str, Callable[[str], Any]] = {
    "date-time": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "uuid": UUID,
}


def misfit(value: Json, schema: Schema) -> str | None:
    """What is wrong with the value, with the place in it; None when it fits."""
    try:
        return _Check(schema).value(value, schema, "", 0)
    except (RecursionError, OverflowError):
        return "it is nested too deeply, or a number is no number"


class _Check:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def value(self, value: Json, schema: Any, at: str, depth: int) -> str | None:
        if schema is True or schema == {}:
            return None
        if schema is False or depth > _DEEPEST or not isinstance(schema, Mapping):
            return f"{_place(at)} may not be there"
        if "$ref" in schema:
            return self.value(value, self._lookup(schema["$ref"]), at, depth + 1)
        for wrong in (_type(value, schema, at), _choice(value, schema, at), self._any(value, schema, at, depth)):
            if wrong is not None:
                return wrong
        if isinstance(value, str):
            return _text(value, schema, at)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _number(value, schema, at)
        if isinstance(value, list | tuple):
            return self._items(value, schema, at, depth)
        return self._fields(value, schema, at, depth) if isinstance(value, Mapping) else None

    def _lookup(self, ref: str) -> Any:
        found: Any = self._root
        for part in str(ref).lstrip("#/").split("/"):
            found = found.get(part, {}) if isinstance(found, Mapping) else {}
        return found

    def _any(self, value: Json, schema: Schema, at: str, depth: int) -> str | None:
        for part in schema.get("allOf", ()):
            wrong = self.value(value, part, at, depth + 1)
            if wrong is not None:
                return wrong
        choices = schema.get("anyOf") or schema.get("oneOf") or ()
        problems = [self.value(value, part, at, depth + 1) for part in choices]
        if not problems or None in problems:
            return None
        return problems[0] if len(problems) == 1 else f"{_place(at)} fits none of its {len(problems)} forms"

    def _items(self, value: Sequence[Json], schema: Schema, at: str, depth: int) -> str | None:
        wrong = _count(len(value), schema, "Items", "items", at)
        if wrong is not None:
            return wrong
        first: Sequence[Any] = schema.get("prefixItems", ())
        for number, item in enumerate(value):
            part = first[number] if number < len(first) else schema.get("items", True)
            wrong = self.value(item, part, f"{at}[{number}]", depth + 1)
            if wrong is not None:
                return wrong
        return None

    def _fields(self, value: Mapping[Any, Json], schema: Schema, at: str, depth: int) -> str | None:
        missing = [name for name in schema.get("required", ()) if name not in value]
        if missing:
            return f"{_place(at)} has no {missing[0]!r}"
        known: Mapping[str, Any] = schema.get("properties", {})
        for name, inner in value.items():
            part = known.get(name, schema.get("additionalProperties", True))
            if part is False:
                return f"{_place(at)} takes no {name!r}"
            wrong = self.value(inner, part, f"{at}.{name}", depth + 1)
            if wrong is not None:
                return wrong
        return None


def _place(at: str) -> str:
    return f"its part {at}" if at else "it"


def _type(value: Json, schema: Schema, at: str) -> str | None:
    named = schema.get("type")
    wanted = [named] if isinstance(named, str) else list(named or ())
    known = [name for name in wanted if name in _TYPES]
    if not known or any(_TYPES[name](value) for name in known):
        return None
    return f"{_place(at)} is no {' or '.join(known)}: {_shown(value)}"


def _choice(value: Json, schema: Schema, at: str) -> str | None:
    choices = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    # 1 is no True here, though Python thinks so.
    if choices is None or any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in choices):
        return None
    return f"{_place(at)} is none of {', '.join(map(_shown, choices))}: {_shown(value)}"


def _text(value: str, schema: Schema, at: str) -> str | None:
    pattern, form = schema.get("pattern"), schema.get("format")
    if isinstance(pattern, str) and _is_pattern(pattern) and re.search(pattern, value) is None:
        return f"{_place(at)} does not match {pattern}: {_shown(value)}"
    if isinstance(form, str) and form in _FORMATS:
        try:
            _FORMATS[form](value)
        except ValueError:
            return f"{_place(at)} is no {form}: {_shown(value)}"
    return _count(len(value), schema, "Length", "characters", at)


def _is_pattern(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False  # another dialect; its own code will say
    return True


def _number(value: float, schema: Schema, at: str) -> str | None:
    if not math.isfinite(value):
        return f"{_place(at)} is no number JSON has"
    limits: Mapping[str, tuple[Callable[[float, float], bool], str]] = {
        "minimum": (lambda one, limit: one >= limit, "at least"),
        "maximum": (lambda one, limit: one <= limit, "at most"),
        "exclusiveMinimum": (lambda one, limit: one > limit, "above"),
        "exclusiveMaximum": (lambda one, limit: one < limit, "below"),
    }
    for name, (fits, words) in limits.items():
        if isinstance(schema.get(name), int | float) and not fits(value, schema[name]):
            return f"{_place(at)} has to be {words} {schema[name]}: {_shown(value)}"
    return None


def _count(count: int, schema: Schema, noun: str, words: str, at: str) -> str | None:
    least, most = schema.get(f"min{noun}"), schema.get(f"max{noun}")
    if isinstance(least, int) and count < least:
        return f"{_place(at)} has {count} {words}; at least {least} are needed"
    if isinstance(most, int) and count > most:
        return f"{_place(at)} has {count} {words}; at most {most} are allowed"
    return None


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
