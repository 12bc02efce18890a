"""Exceptions as problem+json (RFC 9457), always with what was kept and what to do.

One table maps every class of `perdure.errors` to a status and a code; a test walks the tree and fails for a class
without a line. Anything that is not ours is a defect: the answer carries the request id and nothing else.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from perdure import errors
from perdure._ground.encoding.json_values import plain
from perdure._ground.secrets.known_secrets import redact, redact_value
from perdure.server.http.command_words import over_http

TYPE = "urn:perdure:problem:"


class HttpProblem(Exception):
    """A request that is refused by the server itself, before any verb of the library was called."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        kept: str = "nothing was changed",
        do: str = "",
        values: Mapping[str, Any] | None = None,
        errors: list[dict[str, Any]] | None = None,
        headers: Mapping[str, str] | None = None,
        cli: str = "",
    ) -> None:
        """`cli` is the advice in words of the command line, where that differs."""
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.kept, self.do, self.cli = kept, do, cli
        self.values, self.errors, self.headers = values or {}, errors or [], headers or {}


# (status, code); the code None is the snake case of the class's name. Children without a line have their parent's.
STATUSES: dict[type[errors.PerdureError], tuple[int, str | None]] = {
    errors.PerdureError: (500, None),
    errors.NotFound: (404, "not_found"),
    errors.InvalidInput: (422, None),
    errors.AddressRefused: (422, "refused_address"),
    errors.TooLarge: (413, "too_large"),
    errors.Conflict: (409, None),
    errors.KeyReused: (422, None),
    errors.ReplayDiverged: (409, None),
    errors.StepFailed: (409, None),
    errors.EffectUncertain: (409, None),
    errors.ResultNotStorable: (409, None),
    errors.BudgetExhausted: (409, None),
    errors.NoTask: (422, None),
    errors.NotAllowed: (403, "not_allowed"),
    errors.KillSwitchOn: (409, None),
    errors.CutFailed: (409, None),
    errors.Incompatible: (409, None),
    errors.RestoreFailed: (409, None),
    errors.SecretMissing: (409, None),
    errors.CredentialRefused: (409, None),
    errors.BundleRefused: (422, None),
    errors.Rejected: (409, None),
    errors.RateLimited: (429, None),
    errors.TaskFailed: (409, None),
    errors.TimedOut: (408, None),
    errors.UnitEnded: (410, "unit_ended"),
    errors.RequestFailed: (409, None),
    errors.KeeperUnavailable: (503, None),
    errors.SessionUnavailable: (503, None),
    errors.SessionLost: (409, None),
    errors.SqlFailed: (409, None),
    errors.TransactionLost: (409, None),
    errors.StatementUnanswered: (409, None),
    errors.KeyMissing: (500, "key_missing"),
    errors.RecordDamaged: (500, "record_damaged"),
    errors.StoreUnavailable: (503, None),
    errors.StoreFull: (507, "store_full"),
}
_RETRY_AFTER = "1"  # seconds


def status_and_code(kind: type[errors.PerdureError]) -> tuple[int, str]:
    for ancestor in kind.__mro__:
        if ancestor in STATUSES:
            status, code = STATUSES[ancestor]
            return status, code or snake_case(kind.__name__)
    raise AssertionError(kind)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def from_exception(error: BaseException, *, has_match: bool = False) -> HttpProblem:
    """The problem that tells of this exception."""
    if isinstance(error, HttpProblem):
        return error
    if not isinstance(error, errors.PerdureError):
        return HttpProblem(
            500,
            "defect",
            "the server has failed to answer this request",
            kept="what was written before the failure is kept",
            do="tell whoever runs the server the request id; its log has the rest",
        )
    if isinstance(error, errors.NotFound):
        error = errors.NotFound(error.kind, error.name, "this server", do=error.do)  # not where its store lies
    status, code = status_and_code(type(error))
    if isinstance(error, errors.StaleVersion) and has_match:
        status = 412
    if isinstance(error, errors.StoreUnavailable):
        return _without_its_place(error, status, code)
    advice = redact(error.do)
    requests = over_http(advice)
    return HttpProblem(
        status,
        code,
        redact(error.what),
        kept=error.kept or "nothing was changed",
        do=requests,
        cli=advice if requests != advice else "",
        values=redact_value(_values(error)),
        errors=[dict(plain(item)) for item in getattr(error, "errors", ())],
        headers={"Retry-After": _RETRY_AFTER} if status == 503 else {},
    )


def _without_its_place(error: errors.StoreUnavailable, status: int, code: str) -> HttpProblem:
    """A problem with the store, without its address and its own message, which are in the server's log."""
    return HttpProblem(
        status,
        code,
        inspect.getdoc(type(error)) or "The store could not be used.",
        kept="every write that was acknowledged",
        do="try again; the log of the server says more",
        headers={"Retry-After": _RETRY_AFTER} if status == 503 else {},
    )


def _values(error: errors.PerdureError) -> dict[str, Any]:
    hidden = {"what", "kept", "do", "errors", "cause"}
    return {name: plain(value) for name, value in vars(error).items() if name not in hidden and name[0] != "_"}


def body_of(problem: HttpProblem, request_id: str, instance: str) -> dict[str, Any]:
    """The problem as its JSON object; `instance` is the route's pattern, never the path as it was sent."""
    told = {"cli": problem.cli} if problem.cli else {}
    return {
        "type": TYPE + problem.code.replace("_", "-"),
        "title": problem.code.replace("_", " "),
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "kept": problem.kept,
        "do": problem.do,
        **told,
        "instance": instance,
        "request_id": request_id,
        "retryable": problem.status in (429, 502, 503, 504),
        "values": dict(problem.values),
        "errors": list(problem.errors),
    }
