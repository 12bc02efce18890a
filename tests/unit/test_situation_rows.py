"""Why a task is, or is not, running: each row of the table, as a pure function of facts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from perdure._durable.inspect.situation import ROWS, Facts, LiveWorker, decide, without_data
from perdure._durable.inspect.situation.facts import CallFact, OpenQuestion, SwitchFact, Uncertain
from perdure._model import HeldBy, LastError, Pause, Progress

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
SOON, BEFORE = NOW + timedelta(minutes=2), NOW - timedelta(minutes=12)
WORKER = LiveWorker(["default"], [["digest", 2, False]], True, "vm", 4711)


def facts(**given: Any) -> Facts:
    usual: dict[str, Any] = {"id": "a task", "status": "running", "created_at": BEFORE, "updated_at": BEFORE}
    return Facts(**{**usual, "now": NOW, **given})


def function(**given: Any) -> Facts:
    return facts(**{"function": "digest", "version": 2, "queue": "default", "workers": [WORKER], **given})


def paused(reason: Any = "human_input", message: str = "maintenance", **given: Any) -> Pause:
    return Pause(reason=reason, message=message, since=BEFORE, by={"user": "ada"}, **given)


def asks(kind: Any, text: str = "Ship it?", **given: Any) -> OpenQuestion:
    return OpenQuestion(path="|pause.approval#1", kind=kind, text=text, since=BEFORE, way_on="an answer", **given)


def held(state: Any = "alive", **given: Any) -> HeldBy:
    return HeldBy(user="ada", host="vm", pid=7, state=state, lease_seconds=5.0, **given)


TABLE: list[tuple[int, Facts, str, str, str]] = [
    (1, facts(status="completed", finished_at=NOW, result="'receipt'"), "completed", "ended", "'receipt'"),
    (1, facts(status="cancelled", ended_by="ada", undone=3), "cancelled", "ended", "by ada, 3 effects undone"),
    (
        2,
        facts(status="failed", error=LastError(type="ValueError", message="bad row 12")),
        "failed",
        "ended",
        "ValueError: bad row 12",
    ),
    (
        3,
        function(switch=SwitchFact(user="ada", why="costs run away")),
        "stopped",
        "switch",
        "stopped by ada: costs run away",
    ),
    (4, function(is_cancelling=True, holder=held()), "cancelling", "cancel", "is being cancelled"),
    (
        4,
        function(is_cancelling=True),
        "cancelling",
        "cancel",
        "is cancelled by the next worker that knows its effects",
    ),
    (
        5,
        function(damaged="entry 4 of its journal cannot be read"),
        "stuck",
        "damaged",
        "entry 4 of its journal cannot be read",
    ),
    (
        6,
        function(sealed="sealed with key k2, which is not here"),
        "stuck",
        "sealed",
        "sealed with key k2, which is not here",
    ),
    (
        7,
        function(status="paused", pause_kind="diverged", pause=paused(message="asks for 'b'; entry 4 is 'a'")),
        "stuck",
        "diverged",
        "asks for 'b'; entry 4 is 'a'",
    ),
    (8, function(status="paused", questions=[asks("approval")]), "you", "question", "Ship it?"),
    (
        8,
        function(status="paused", questions=[asks("effect", "Did it?", choices=["done"])]),
        "you",
        "question",
        "Did it?",
    ),
    (
        8,
        function(status="paused", questions=[asks("input"), asks("approval")]),
        "you",
        "question",
        "Ship it? (and 1 more)",
    ),
    (
        9,
        function(status="paused", pause_kind="outside", pause=paused()),
        "stopped",
        "paused",
        "paused by ada: maintenance",
    ),
    (
        10,
        function(status="paused", questions=[asks("rate_limit", due_at=SOON, provider="github")]),
        "waiting",
        "pause",
        "until 12:02:00 UTC (rate limit of github)",
    ),
    (
        10,
        function(status="paused", questions=[asks("poll", "CI job 812", due_at=NOW + timedelta(seconds=20), checks=7)]),
        "waiting",
        "pause",
        "CI job 812, looked at again in 20 s (7 looks)",
    ),
    (
        10,
        function(status="paused", questions=[asks("task", topic="import")], awaited={"import": "running"}),
        "waiting",
        "pause",
        "task import (running)",
    ),
    (
        10,
        function(status="paused", questions=[asks("signal", topic="go")]),
        "waiting",
        "pause",
        "a signal: go",
    ),
    (
        11,
        facts(status="pending", dependencies={"build": "running", "tests": "failed"}, policy="skip"),
        "blocked",
        "dependencies",
        "waits for build (running) and tests (failed)",
    ),
    (
        11,
        facts(status="pending", dependencies={"build": "running", "tests": "failed"}),
        "stuck",
        "dependency_failed",
        "it depends on tests (failed)",
    ),
    (
        12,
        function(holder=held(), stalled_seconds=18 * 60.0, call=CallFact(path="fetch#381", since=BEFORE)),
        "stalled",
        "stalled",
        "no progress for 18 min in fetch#381",
    ),
    (
        13,
        function(holder=held(), call=CallFact(path="build#1", since=NOW - timedelta(minutes=2))),
        "working",
        "at_work",
        "build#1 for 2 min",
    ),
    (
        13,
        function(holder=held(), progress=Progress(operation="fetch", done=381, total=612, at=NOW)),
        "working",
        "at_work",
        "fetch, 381 of 612",
    ),
    (
        14,
        function(holder=held("silent", silent_seconds=3.9)),
        "starting",
        "silent",
        "host vm is silent for 3 s of its lease of 5 s; then another takes over",
    ),
    (15, function(not_before=SOON), "waiting", "retry", "its next attempt at 12:02:00 UTC"),
    (16, function(workers=[]), "stuck", "no_worker", "no worker is running"),
    (
        17,
        function(version=3),
        "stuck",
        "code",
        "no live worker knows digest version 3; they know version 2",
    ),
    (17, function(queue="gpu"), "stuck", "code", "no live worker takes tasks of queue 'gpu'"),
    (
        18,
        function(could_not_begin="the database schema has changed"),
        "stuck",
        "could_not_begin",
        "the database schema has changed",
    ),
    (19, function(ahead=3), "starting", "turn", "its turn: 3 before it"),
    (
        19,
        function(holder=held("dead")),
        "starting",
        "turn",
        "its worker (pid 7 on vm) has died; another takes it over",
    ),
    (20, facts(), "idle", "unattended", "open; no process works on it"),
]


@pytest.mark.req("R94")
@pytest.mark.parametrize("number, given, kind, cause, say", TABLE)
def test_each_row_says_why(number: int, given: Facts, kind: str, cause: str, say: str) -> None:
    found = decide(given)
    assert (found.kind, found.cause, found.say) == (kind, cause, say)
    matching = [index for index, row in enumerate(ROWS, 1) if row(given) is not None]
    assert matching[0] == number, "the row before it would be told"
    assert found.next, "something follows, or ends it"
    assert len(found.headline) <= 90
    assert all(way.label and way.cli.startswith("perdure") for way in found.ways)


def test_every_row_of_the_table_is_tried() -> None:
    assert {number for number, *_ in TABLE} == set(range(1, len(ROWS) + 1))


@pytest.mark.req("R94")
def test_the_first_row_that_fits_is_told() -> None:
    """Each fact is added to what was there before, from the last row to the first."""
    given: dict[str, Any] = {}
    for added, kind, cause in [
        ({}, "starting", "turn"),
        ({"could_not_begin": "no"}, "stuck", "could_not_begin"),
        ({"version": 3}, "stuck", "code"),
        ({"workers": []}, "stuck", "no_worker"),
        ({"not_before": SOON}, "waiting", "retry"),
        ({"holder": held("silent")}, "starting", "silent"),
        ({"holder": held()}, "working", "at_work"),
        ({"stalled_seconds": 60.0}, "stalled", "stalled"),
        ({"dependencies": {"build": "running"}}, "blocked", "dependencies"),
        ({"status": "paused", "questions": [asks("timer", due_at=SOON)]}, "waiting", "pause"),
        ({"pause_kind": "outside", "pause": paused()}, "stopped", "paused"),
        ({"questions": [asks("approval")]}, "you", "question"),
        ({"pause_kind": "diverged"}, "stuck", "diverged"),
        ({"holder": None, "sealed": "sealed"}, "stuck", "sealed"),
        ({"damaged": "damaged"}, "stuck", "damaged"),
        ({"is_cancelling": True}, "cancelling", "cancel"),
        ({"switch": SwitchFact(user="ada")}, "stopped", "switch"),
        ({"status": "failed"}, "failed", "ended"),
        ({"status": "completed"}, "completed", "ended"),
    ]:
        given |= added
        found = decide(function(**given))
        assert (found.kind, found.cause) == (kind, cause), added


def test_a_task_that_waits_by_itself_says_when_no_worker_would_notice() -> None:
    asked = [asks("timer", "", due_at=SOON)]
    attended = decide(function(status="paused", questions=asked))
    assert attended.by_itself and not attended.unattended and attended.until == SOON
    alone = decide(function(status="paused", questions=asked, workers=[]))
    assert alone.unattended
    assert alone.say == "until 12:02:00 UTC — but no worker is there to notice"
    assert attended.next == asked[0].way_on
    assert "`perdure worker module:app` starts one" in alone.next


def test_a_question_says_until_when_and_what_stands_then() -> None:
    asked = asks("approval", expires_at=SOON, otherwise="reject")
    found = decide(function(status="paused", questions=[asked]))
    assert (found.until, found.you) == (SOON, 1)
    assert "Without an answer by 12:02:00 UTC, it is rejected." in found.details


def test_a_question_that_the_code_has_left_behind_does_not_hide_that_the_task_works() -> None:
    left = asks("effect", is_waited_for=False, choices=["done", "fail"])
    found = decide(function(holder=held(), questions=[left]))
    assert (found.kind, found.you) == ("working", 1)


def test_an_uncertain_effect_is_settled_before_the_task_goes_on() -> None:
    found = decide(function(workers=[], uncertain=Uncertain(name="charge")))
    assert found.next.startswith("whether charge happened is settled first. And no worker is running")


def test_a_long_sentence_is_cut() -> None:
    found = decide(function(status="paused", questions=[asks("approval", "Why? " * 100), asks("input")]))
    assert len(found.say) == 160 and found.say.endswith("… (and 1 more)")
    assert len(found.headline) == 90


SECRET = "what an agent wrote"


@pytest.mark.req("R58")
@pytest.mark.parametrize(
    "given, say",
    [
        (function(status="paused", questions=[asks("approval", SECRET)]), "an approval"),
        (function(status="paused", questions=[asks("input", SECRET)]), "an answer"),
        (function(status="paused", questions=[asks("effect", SECRET)]), "whether an effect happened"),
        (facts(status="failed", error=LastError(type="ValueError", message=SECRET)), "ValueError"),
        (facts(status="completed", result=SECRET), "completed"),
        (function(status="paused", pause_kind="outside", pause=paused(message=SECRET)), "paused by ada"),
        (
            function(status="paused", pause_kind="diverged", pause=paused(message=SECRET, details={"advice": SECRET})),
            "its code asks for other calls than its journal has",
        ),
        (function(could_not_begin=SECRET), "its last attempt could not begin"),
        (function(status="paused", questions=[asks("poll", SECRET, due_at=SOON)]), None),
    ],
)
def test_without_the_right_to_read_data_no_sentence_has_what_agents_wrote(given: Facts, say: str | None) -> None:
    assert SECRET in repr(decide(given)), "the test would show nothing"
    found = decide(without_data(given))
    assert SECRET not in repr(found)
    assert say is None or found.say == say
