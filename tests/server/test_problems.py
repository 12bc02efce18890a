"""Every error of the library has a status and a code over HTTP, and no answer tells more than it should."""

from __future__ import annotations

import inspect

import pytest

from perdure import errors
from perdure.server.http.problems import STATUSES, HttpProblem, body_of, from_exception, status_and_code

# The statuses that were decided, by class; a class that is not named has its nearest named ancestor's.
DECIDED = {
    "PerdureError": 500, "NotFound": 404, "InvalidInput": 422, "AddressRefused": 422, "TooLarge": 413, "Conflict": 409,
    "StaleVersion": 409, "KeyReused": 422,
    "ReplayDiverged": 409, "StepFailed": 409, "EffectUncertain": 409, "ResultNotStorable": 409,
    "BudgetExhausted": 409, "NoTask": 422, "NotAllowed": 403, "KillSwitchOn": 409, "CutFailed": 409,
    "Incompatible": 409, "RestoreFailed": 409, "SecretMissing": 409, "CredentialRefused": 409, "BundleRefused": 422,
    "Rejected": 409, "RateLimited": 429, "TaskFailed": 409, "TimedOut": 408, "UnitEnded": 410, "RequestFailed": 409,
    "KeeperUnavailable": 503, "SessionUnavailable": 503, "SessionLost": 409, "SqlFailed": 409, "TransactionLost": 409,
    "StatementUnanswered": 409, "KeyMissing": 500, "RecordDamaged": 500, "StoreUnavailable": 503, "StoreFull": 507,
}  # fmt: skip
KINDS = sorted(
    (kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.PerdureError)),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_the_status_that_was_decided(kind):
    ancestors = [ancestor.__name__ for ancestor in kind.__mro__ if ancestor.__name__ in DECIDED]
    assert kind is errors.PerdureError or ancestors[0] != "PerdureError", (
        f"{kind.__name__} has no line in perdure/server/http/problems.py: it would be a defect (500) to its caller"
    )
    assert status_and_code(kind)[0] == DECIDED[ancestors[0]]


def test_the_table_of_statuses_is_the_decided_one():
    assert {kind.__name__ for kind in STATUSES} | {"StaleVersion"} == set(DECIDED)


def test_no_two_errors_share_a_code_unless_they_are_kin():
    codes: dict[str, type] = {}
    for kind in KINDS:
        other = codes.setdefault(status_and_code(kind)[1], kind)
        assert issubclass(kind, other) or issubclass(other, kind), (kind, other)


def test_a_stale_version_is_412_for_a_request_that_said_what_it_has_seen():
    stale = errors.StaleVersion("one", 1, 2)
    assert from_exception(stale).status == 409
    assert from_exception(stale, has_match=True).status == 412


@pytest.mark.parametrize("kind", [errors.StoreUnavailable, errors.KeeperUnavailable])
def test_what_may_work_later_says_when(kind):
    problem = from_exception(kind("away"))
    assert (problem.status, problem.headers["Retry-After"]) == (503, "1")
    assert body_of(problem, "r1", "/v1")["retryable"] is True


def test_a_problem_has_what_was_kept_and_what_to_do():
    body = body_of(
        from_exception(errors.NotFound("task", "one", "this store", do="list them")), "r1", "/v1/tasks/{task}"
    )
    assert body["type"] == "urn:perdure:problem:not-found"
    assert (body["status"], body["code"], body["request_id"]) == (404, "not_found", "r1")
    assert body["kept"] and body["do"] == "list them"


@pytest.mark.threat("T26")
@pytest.mark.parametrize("error", [ValueError("/etc/passwd"), KeyError("SELECT 1"), AssertionError("HOME=/root")])
def test_a_defect_tells_its_request_id_and_nothing_else(error):
    problem = from_exception(error)
    body = str(body_of(problem, "r1", "/v1"))
    assert (problem.status, problem.code) == (500, "defect")
    assert str(error).strip("'") not in body and type(error).__name__ not in body and "r1" in body


def test_a_refusal_of_the_server_is_given_as_it_is():
    problem = HttpProblem(418, "teapot", "no coffee")
    assert from_exception(problem) is problem
