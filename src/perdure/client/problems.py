"""From problem+json back to the exception that the library would have raised in this process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from perdure import errors
from perdure.errors import NotAllowed, NotFound, PerdureError, StoreUnavailable, StoreUnreachable


def error_of(status: int, problem: Any, url: str) -> PerdureError:
    """The exception for a refused request; its values are attributes, as in this process."""
    if not isinstance(problem, Mapping) or not isinstance(problem.get("code"), str):
        return StoreUnreachable(
            f"{url} answered {status}, and not as a perdure server does", do="look what listens at this address"
        )
    code = problem["code"]
    what, kept, do = (str(problem.get(name) or "") for name in ("detail", "kept", "do"))
    kind = _KINDS.get(code) or _by_status(status)
    error = kind.__new__(kind)
    PerdureError.__init__(error, what, kept=kept, do=do)
    values = problem.get("values")
    if isinstance(values, Mapping):
        error.__dict__.update({name: value for name, value in values.items() if name.isidentifier()})
    if kind is NotFound:
        error.__dict__.setdefault("kind", "record")
        error.__dict__.setdefault("name", "")
        error.__dict__.setdefault("store", url)
    error.__dict__.update(code=code, request_id=problem.get("request_id", ""), errors=problem.get("errors") or [])
    return error


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


def _all(kind: type[PerdureError]) -> list[type[PerdureError]]:
    return [kind, *(one for child in kind.__subclasses__() for one in _all(child))]


def _code(kind: type[PerdureError]) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__).lower()


_KINDS = {_code(kind): kind for kind in _all(PerdureError)}
