"""Every error of the library has a status and a code over HTTP, and no answer tells more than it should."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from perdure import Perdure, errors
from perdure.client.problems import error_of
from perdure.server.http.command_words import LOCAL, ROUTES, over_http
from perdure.server.http.problems import STATUSES, HttpProblem, body_of, from_exception, status_and_code
from perdure.server.table import routes
from tests.support.http_server import make_key, request, serving

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


# ── advice ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "advice, told",
    [
        ("`perdure resume 'a b'`", "`POST /v1/tasks/a%20b/resume`"),
        ("perdure resume ship --plan", "`GET /v1/tasks/ship/plan`"),
        ("wait, or `perdure take ship`; see `perdure show ID`",
         "wait, or `POST /v1/tasks/ship/take`; see `GET /v1/tasks/{task}`"),
        ("`perdure kill-switch off ship`", "`DELETE /v1/switches/ship`"),
        ("`perdure fork ship NEW --at 3`", "`POST /v1/tasks/ship/fork`"),
        ("`perdure approve ship`", "`POST /v1/inbox/{pause}/approve`"),
        ("`perdure keys generate` makes one", "`perdure keys generate` makes one"),
        ("use a new key", "use a new key"),
    ],
)  # fmt: skip
def test_advice_that_names_a_command_names_the_request_that_does_the_same(advice, told):
    assert over_http(advice) == told


def test_every_request_of_the_advice_is_a_route():
    served = {route.name for route in routes()}
    assert [name for name in ROUTES.values() if name not in served] == []


def test_every_command_that_an_error_names_has_a_request_or_is_for_the_stores_machine():
    """An advice that is formed at run time is found by the command's first words."""
    rooms = ("errors.py", "_tasks", "_durable", "_runtime", "_worker", "_store", "_model", "_ground", "memory")
    package = Path(errors.__file__).parent
    files = [
        file
        for room in rooms
        for file in ([package / room] if room.endswith(".py") else (package / room).rglob("*.py"))
    ]
    named = {
        (file.name, found)
        for file in files
        for found in re.findall(r"do=f?[\"'][^\n]*?`perdure ([a-z-]+(?: [a-z-]+)?)", file.read_text(encoding="utf-8"))
    }
    known = ROUTES.keys() | LOCAL
    assert [one for one in sorted(named) if not {one[1], one[1].split()[0]} & known] == []


async def test_a_refusal_tells_its_caller_the_request_and_a_client_the_command(quick_url):
    async with Perdure(quick_url) as app:
        task = await app.tasks.create("ship", state={})
        await task.pause("Go on?")
        async with serving(quick_url) as server:
            key = await make_key(server, "admin")
            sent = {"key": key, "body": {"result": 1}}
            refused = await request(server, "POST", "/v1/tasks/ship/complete", **sent)
    told = refused.json
    assert refused.status == 409 and "/v1/tasks/ship/resume" in told["do"] and "perdure " not in told["do"]
    assert "perdure resume ship" in told["cli"]
    assert error_of(refused.status, told, "http://x").do == told["cli"]
