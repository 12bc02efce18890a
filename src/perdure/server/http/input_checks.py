"""Queries and bodies of requests, checked before a handler sees them.

JSON is checked as text first: duplicate keys, NaN, lone surrogates, numbers beyond 64 bits and nesting deeper than 64
are refused. Then it has to fit the route's shape; a field that the shape does not know is refused with the nearest one.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from perdure.server.http.problems import HttpProblem

S = TypeVar("S", bound=Struct)
DEPTH = 64
_SURROGATE = re.compile("[\ud800-\udfff]")
_BIGGEST = 2**63
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_POSITION = re.compile(r"[0-9]{1,18}")
_STEP = re.compile(r"\.([^.\[\]]+)|\[([^\]]+)\]")
_REFUSED = re.compile(r";\s*q=0(\.0*)?\s*(;|$)")  # a media type that Accept names in order to refuse it
_NUMBER = re.compile(r"[-+0-9.eE]+")
_BRACKET = re.compile(rb"[\[{}\]]")


def read_body(raw: bytes, shape: type[S], *, depth: int = DEPTH) -> S:
    """The body as its shape. An empty body is an empty object."""
    value = read_json(raw, depth=depth) if raw else {}
    return _fit(value, shape, 422, "invalid_input")


def read_json(raw: bytes, *, depth: int = DEPTH) -> Any:
    """Any JSON value, without what JSON leaves open."""
    if _deepest(raw) > depth:
        raise _bad(f"the body is nested deeper than {depth} levels")
    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_int=_read_int,
            parse_float=_read_float,
        )
    except HttpProblem:
        raise
    except UnicodeDecodeError:
        raise _bad("the body is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise _bad(f"the body is not JSON: {error}") from None
    if b"\\u" in raw and _has_surrogate(value):
        raise _bad("the body holds a lone surrogate")
    return value


def read_query(raw: bytes, shape: type[S]) -> S:
    """The query string as its shape. A field that is a tuple takes repeated parameters; `tag.<key>` fills `tags`."""
    known, kinds = _known_to(shape)
    given: dict[str, Any] = {}
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise _bad("the query string is malformed") from None
    for name, value in pairs:
        if name.startswith("tag.") and "tags" in known:
            if name[4:] in given.setdefault("tags", {}):
                raise _bad(f"the parameter {name!r} is given twice")
            given["tags"][name[4:]] = value
        elif name not in known or name == "tags":
            raise _unknown("parameter", name, list(known), 400, "bad_request")
        elif _takes_several(kinds[known[name]]):
            given.setdefault(name, []).extend(value.split(",") if value else [])
        elif name in given:
            raise _bad(f"the parameter {name!r} is given twice")
        else:
            _refuse_loose(name, value, str(kinds[known[name]]))
            given[name] = value
    return _fit(given, shape, 400, "bad_request", is_text=True)


def _refuse_loose(name: str, value: str, kind: str) -> None:
    """Refuse what msgspec reads in a text beyond what the contract says: a null, and a number as a moment."""
    if value.lower() == "null" and "str" not in kind:
        raise _bad(f"the parameter {name!r} is null", do="leave it out")
    if "datetime" in kind and _NUMBER.fullmatch(value):
        raise _bad(f"the parameter {name!r} is a number", do="write a moment: 2026-11-17T12:00:00Z")


def is_accepted(accept: str, media: str) -> bool:
    """True if the header Accept allows an answer of this media type. Without the header everything is allowed."""
    if not accept.strip():
        return True
    allowed = {one.partition(";")[0].strip().lower() for one in accept.split(",") if not _REFUSED.search(one)}
    return not allowed.isdisjoint({"*/*", media, media.partition("/")[0] + "/*"})


@lru_cache(maxsize=1024)
def _known_to(shape: type[Struct]) -> tuple[dict[str, str], dict[str, Any]]:
    """The fields of a shape, by the name they have in a request, and what each holds."""
    return {field.encode_name: field.name for field in msgspec.structs.fields(shape)}, get_type_hints(shape)


def _takes_several(kind: Any) -> bool:
    return str(kind).startswith(("tuple[", "typing.Tuple"))


def _fit(value: Any, shape: type[S], status: int, code: str, *, is_text: bool = False) -> S:
    if not isinstance(value, dict):
        raise HttpProblem(status, code, "the body has to be a JSON object")
    known = list(_known_to(shape)[0])
    for name in value:
        if name not in known:
            raise _unknown("parameter" if is_text else "field", name, known, status, code)
    try:
        return msgspec.convert(value, shape, strict=not is_text)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        path = _path_of(place.rstrip("`"))
        where = f"{'.'.join(map(str, path))}: " if path else ""
        raise HttpProblem(status, code, f"{where}{what}", errors=[{"path": path, "message": what}]) from None


def _path_of(place: str) -> list[str | int]:
    return [int(index) if _POSITION.fullmatch(index) else name or index for name, index in _STEP.findall(place)]


def _unknown(kind: str, name: str, known: list[str], status: int, code: str) -> HttpProblem:
    near = difflib.get_close_matches(name[:100], known, 1)
    do = f"did you mean {near[0]!r}?" if near else (f"known: {', '.join(known)}" if known else f"send no {kind}s")
    return HttpProblem(
        status,
        code,
        f"unknown {kind} {name[:100]!r}",
        do=do,
        errors=[{"path": [name[:100]], "message": f"unknown {kind}"}],
    )


def _bad(detail: str, *, do: str = "correct the request and send it again") -> HttpProblem:
    return HttpProblem(400, "bad_request", detail, do=do)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _bad("the body names the same key twice in one object")
    return made


def _refuse_constant(name: str) -> Any:
    raise _bad(f"{name} is not JSON")


def _read_int(text: str) -> int:
    if len(text) > 20 or not -_BIGGEST <= (number := int(text)) < 2 * _BIGGEST:
        raise _bad("the body holds a number beyond 64 bits")
    return number


def _read_float(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise _bad("the body holds a number beyond 64 bits")
    return number


def _deepest(raw: bytes) -> int:
    """The depth of nested brackets, without those in strings."""
    deepest = level = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", raw)):
        level += 1 if bracket in b"[{" else -1
        deepest = max(deepest, level)
    return deepest


def _has_surrogate(value: Any) -> bool:
    if isinstance(value, str):
        return _SURROGATE.search(value) is not None
    if isinstance(value, dict):
        return any(_has_surrogate(key) or _has_surrogate(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_surrogate, value))
