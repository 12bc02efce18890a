"""From problem+json back to the exception that the library would have raised in this process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

import msgspec

from perdure import errors
from perdure.errors import NotAllowed, NotFound, PerdureError, StoreUnavailable, StoreUnreachable


def error_of(status: int, problem: Any, url: str) -> PerdureError:
    """The exception for a refused request; its values are attributes, as in this process."""
    if not isinstance(problem, Mapping) or not isinstance(problem.get("code"), str):
        return not_a_server(status, "", url)
    code = problem["code"]
    what, kept = (str(problem.get(name) or "") for name in ("detail", "kept"))
    do = str(problem.get("cli") or problem.get("do") or "")  # in the words of the library, as in this process
    kind = _KINDS.get(code) or _by_status(status)
    error = kind.__new__(kind)
    PerdureError.__init__(error, what, kept=kept, do=do)
    values = problem.get("values")
    if isinstance(values, Mapping):
        types = _types_of(kind)  # type: ignore[arg-type]
        error.__dict__.update(
            {name: _as(types.get(name), value) for name, value in values.items() if name.isidentifier()}
        )
    if kind is NotFound:
        error.__dict__.setdefault("kind", "record")
        error.__dict__.setdefault("name", "")
        error.__dict__.setdefault("store", url)
    error.__dict__.update(code=code, request_id=problem.get("request_id", ""), errors=problem.get("errors") or [])
    return error


def not_a_server(status: int, location: str, url: str) -> PerdureError:
    """For an answer that no perdure server gives: that of a proxy, a login page, or of another program."""
    if 300 <= status < 400:
        where = f" to {_shown(location)}" if location else ""
        return StoreUnreachable(
            f"{url} sends its callers elsewhere{where}; an API key is not sent after it",
            kept="nothing was sent there",
            do="give the address of the server itself, with https:// if its proxy wants that",
        )
    return StoreUnreachable(
        f"{url} answered {status}, and not as a perdure server does", do="look what listens at this address"
    )


def _shown(location: str) -> str:
    """An address without its query, which can hold secrets."""
    return repr(location.partition("?")[0][:200])


def _by_status(status: int) -> type[PerdureError]:
    if status in (401, 403):
        return NotAllowed
    if status == 404:
        return NotFound
    if status == 410:
        return errors.UnitEnded
    if status in (409, 412, 428):
        return errors.Conflict
    if status in (400, 413, 415, 422):
        return errors.InvalidInput
    return StoreUnavailable


@cache
def _types_of(kind: Any) -> Mapping[str, Any]:
    """What the attributes of this exception are, where that can be told."""
    try:
        return get_type_hints(kind)
    except (NameError, TypeError):
        return {}


def _as(type_: Any, value: Any) -> Any:
    """The value as the library has it: a tuple, a moment."""
    if type_ is None:
        return value
    try:
        return msgspec.convert(value, type_, strict=False)
    except (msgspec.ValidationError, TypeError, ValueError):
        return value


def _all(kind: type[PerdureError]) -> list[type[PerdureError]]:
    return [kind, *(one for child in kind.__subclasses__() for one in _all(child))]


def _code(kind: type[PerdureError]) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__).lower()


_KINDS = {_code(kind): kind for kind in _all(PerdureError)}
