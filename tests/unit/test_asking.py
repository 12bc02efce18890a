"""What to do about an open question, and whether an answer fits: decided without a clock and without a store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure._durable.values.schemas import schema_of
from perdure._model import (
    Answer,
    Asked,
    Check,
    Later,
    Remind,
    Wake,
    decide,
    first_look,
    from_stored,
    hash_of_token,
    make_pause,
    misfit,
    misfits,
    new_token,
    next_check,
    of_pause,
    task_of_token,
    to_stored,
)

HOUR = 3_600_000


@given(
    due=st.integers(0, 10 * HOUR),
    now=st.integers(0, 20 * HOUR),
    jump=st.integers(-HOUR, HOUR),
)
def test_a_wait_is_over_exactly_when_its_moment_has_come_however_the_clock_jumps(due: int, now: int, jump: int) -> None:
    asked = Asked(kind="wait", due_at=due)
    for moment in (now, now + jump):
        decision = decide(asked, moment)
        assert isinstance(decision, Answer if moment >= due else Later)
    assert first_look(asked, now) == due


@given(checks=st.integers(0, 5000), backoff=st.floats(1, 10), spread=st.floats(0, 1, exclude_max=True))
def test_an_interval_grows_and_never_past_an_hour(checks: int, backoff: float, spread: float) -> None:
    asked = Asked(kind="poll", every_ms=1000, backoff=backoff, checks=checks)
    assert 1000 <= next_check(asked, 0, spread) <= HOUR * 1.1


def test_a_question_is_reminded_of_and_then_expires() -> None:
    asked = Asked(kind="approval", remind_at=10, expires_at=20, default="approve", has_default=True)
    assert first_look(asked, 0) == 10
    assert decide(asked, 10) == Remind(20)
    found = decide(asked, 20)
    assert isinstance(found, Answer) and found.value["decision"] == "approve" and found.value["expired"]


def test_a_poll_is_checked_by_whoever_can_until_its_limit() -> None:
    described = Asked(kind="poll", check={"file": "x"}, every_ms=10, expires_at=100)
    assert isinstance(decide(described, 50), Check)
    assert isinstance(decide(Asked(kind="poll", every_ms=10), 50), Wake)
    assert decide(described, 100) == Answer({"expired": True}, "expired")


def test_a_provider_that_asks_for_more_patience_gets_it() -> None:
    asked = Asked(kind="rate_limit", due_at=10, provider="api")
    assert isinstance(decide(asked, 10), Answer)
    assert decide(asked, 10, reset_at=500) == Later(500)


def test_what_is_kept_of_a_question_comes_back_and_what_is_newer_is_left_alone() -> None:
    asked = Asked(kind="input", schema={"type": "integer"}, expires_at=5)
    assert from_stored(to_stored(asked)) == asked
    assert from_stored({**to_stored(asked), "colour": "red"}) == asked
    assert from_stored({}) is None


def test_a_pause_of_a_plain_task_is_looked_at_like_a_question() -> None:
    now = 1_000_000

    def first(reason: str, **payload: Any) -> int | None:
        return first_look(of_pause(make_pause(reason, "why", payload, now, {})), now)

    assert first("scheduled_wait", duration=timedelta(seconds=3)) == now + 3000
    assert first("human_approval") is None
    assert first("human_approval", expires="10s", remind="4s") == now + 4000
    assert first("checkpoint") == now
    assert first("external_dependency", system="ci") is None
    assert first("external_dependency", url="https://ci.example", every="10s") == now + 10_000


def test_a_token_names_its_task_and_nothing_like_it_is_one() -> None:
    uid = "0123456789abcdefghijklmn"
    token = new_token(uid)
    assert task_of_token(token) == uid and hash_of_token(token) not in (None, hash_of_token(new_token(uid)))
    assert [hash_of_token(wrong) for wrong in ("", "abc", token[:-1], f"{token} ", token.upper())] == [None] * 5


# ── does an answer fit ───────────────────────────────────────────────────────────────────────────


@dataclass
class Point:
    x: int
    y: int = 0


class Shape(msgspec.Struct):
    name: str
    points: list[Point]
    at: datetime | None = None


CASES: list[tuple[Any, list[Any], list[Any]]] = [
    (int, [0, 7, -3], ["abc", 1.5, 2.0, None, True, [], float("nan")]),
    (float, [0, 1.5], ["1.5", None, True]),
    (bool, [True, False], [0, 1, "true"]),
    (str, ["", "é"], [1, None]),
    (Literal["a", "b"], ["a"], ["c", None, 1]),
    (int | None, [None, 1], ["x"]),
    (list[int], [[], [1, 2]], [[1, "x"], {}, "12"]),
    (dict[str, int], [{}, {"a": 1}], [{"a": "x"}, []]),
    (Point, [{"x": 1}, {"x": 1, "y": 2}], [{}, {"x": "1"}, {"y": 1}, 5]),
    (Shape, [{"name": "n", "points": [{"x": 1}]}], [{"name": "n", "points": [{"x": "1"}]}, {"points": []}]),
    (datetime, ["2026-03-01T12:00:00Z"], [5, "soon"]),
    (list[datetime] | None, [None, ["2026-03-01T12:00:00Z"]], [["soon"]]),
    (dict[str, tuple[int, datetime]], [{"a": [1, "2026-03-01T12:00:00Z"]}], [{"a": [1, "soon"]}]),
    (Shape, [{"name": "n", "points": [], "at": "2026-03-01T12:00:00Z"}], [{"name": "n", "points": [], "at": "soon"}]),
    (tuple[int, str], [[1, "a"]], [[1], ["a", 1], [1, "a", 2]]),
]


@pytest.mark.parametrize("annotation, good, bad", CASES, ids=[str(case[0])[:40] for case in CASES])
def test_values_fit_the_schema_of_an_annotation_as_msgspec_reads_them(
    annotation: Any, good: list[Any], bad: list[Any]
) -> None:
    schema = schema_of(annotation)
    assert schema is not None
    for value in good:
        assert misfit(value, schema) is None, value
        msgspec.convert(value, annotation)
    for value in bad:
        assert misfit(value, schema) is not None, value


def test_schemas_that_mean_no_good_are_survived() -> None:
    looped: dict[str, Any] = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert misfit(1, looped) is not None
    assert misfit("x", {"type": "string", "pattern": "("}) is None
    deep: Any = 0
    for _ in range(2000):
        deep = [deep]
    schema: dict[str, Any] = {"$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}
    assert misfit(deep, schema) is not None
    assert misfit(datetime.now(UTC).isoformat(), {"type": "string", "format": "date-time"}) is None


@pytest.mark.req("R33")
def test_each_thing_that_is_wrong_has_its_place() -> None:
    schema = schema_of(Shape)
    assert schema is not None
    found = misfits({"points": [{"x": 1}, {"x": "1", "y": True}], "at": 5}, schema)
    assert [(one.path, one.message) for one in found] == [
        (("name",), "it is missing"),
        (("points", 1, "x"), "it is not an integer: '1'"),
        (("points", 1, "y"), "it is not an integer: True"),
        (("at",), "it fits none of its 2 forms"),
    ]
    assert str(found[1]) == "points[1].x: it is not an integer: '1'"
    closed = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
    assert misfits({"b": 1}, closed)[0].path == ("b",)
    assert len(misfits(["x"] * 1000, {"items": {"type": "integer"}})) == 100


FORMATS: list[tuple[str, list[str], list[str]]] = [
    ("date-time", ["2026-11-17T12:00:00Z", "2026-11-17T12:00:00+02:00"], ["soon", "2026-13-01T00:00:00Z", ""]),
    ("duration", ["PT1H30M", "P3D", "PT0.5S", "-P1DT2H", "P1Y2M"], ["P", "PT", "1h", "P1H", "", "PT1"]),
    ("decimal", ["12.50", "-3", "1e5"], ["NaN", "Infinity", "1,5", "", "x", "9" * 2000]),
    ("email", ["ada@example.org", "a+b@c"], ["ada", "a@b@c", "a b@c", "@c", "a@", "a@.c"]),
    ("uri", ["https://example.org/x?y#z", "urn:isbn:1"], ["example.org", "https:// x", "", ":x"]),
    ("uuid", ["12345678-1234-5678-1234-567812345678"], ["1234"]),
    ("unknown", ["anything"], []),
]


@pytest.mark.parametrize("form, good, bad", FORMATS, ids=[case[0] for case in FORMATS])
def test_a_text_has_to_fit_its_format(form: str, good: list[str], bad: list[str]) -> None:
    schema = {"type": "string", "format": form}
    assert [value for value in good if misfits(value, schema)] == []
    assert [value for value in bad if not misfits(value, schema)] == []


def test_a_pattern_takes_time_by_the_length_of_the_text_only() -> None:
    """Python's own engine needs years for this one."""
    assert misfits("a" * 60 + "!", {"pattern": "^(a+)+$"}) != []
    assert misfits("a" * 60, {"pattern": "^(a+)+$"}) == []
    assert misfits("a" * 100_000 + "!", {"pattern": "^(a|a)*$"}) != []


def test_a_pattern_that_cannot_be_tried_is_left_to_the_code() -> None:
    for pattern in ("(", r"(?<=x)y", r"(a)\1", "((a{1000}){1000}){1000}", "a" * 3000):
        assert misfits("zzz", {"pattern": pattern}) == [], pattern
