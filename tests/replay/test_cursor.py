"""The pure core: what was recorded and what is asked, compared."""

from __future__ import annotations

from typing import Any

from perdure._model import Entry
from perdure._replay import Cursor, Cut, Diverged, Fresh, Recorded, Uncertain, digest


def entry(path: str, kind: Any = "result", op: str = "step", of: Any = 1, value: bytes | None = b"\x01") -> Entry:
    return Entry(kind, op, path, digest((of,), {}), value)


def cursor(*entries: Entry) -> Cursor:
    return Cursor(list(enumerate(entries, 1)))


ONE, TWO = digest((1,), {}), digest((2,), {})


def test_a_recorded_call_is_answered_with_its_entry() -> None:
    first, second = entry("|a#1"), entry("|a#2", of=2)
    asked = cursor(first, second)
    assert asked.ask("", "a", ONE) == Recorded("|a#1", 1, first)
    assert asked.ask("", "a", TWO) == Recorded("|a#2", 2, second)


def test_a_call_beyond_the_journal_is_fresh() -> None:
    asked = cursor(entry("|a#1"))
    asked.ask("", "a", ONE)
    assert asked.ask("", "a", ONE) == Fresh("|a#2")
    assert asked.end() is None


def test_other_arguments_diverge_and_both_are_named() -> None:
    found = cursor(entry("|a#1")).ask("", "a", TWO)
    assert found == Diverged(1, "a(1)", "a(2)", "arguments")


def test_long_arguments_diverge_too_though_they_cannot_be_named() -> None:
    recorded = Entry("result", "step", "|a#1", digest(("x" * 100,), {}))
    found = cursor(recorded).ask("", "a", digest(("y" * 100,), {}))
    assert found == Diverged(1, "a(…)", "a(…) with other arguments", "arguments")


def test_a_fresh_call_before_an_unasked_result_of_its_scope_diverges() -> None:
    found = cursor(entry("|a#1"), entry("|b#1")).ask("", "c", ONE)
    assert found == Diverged(1, "a(1)", "c(1)", "name")


def test_an_end_with_an_unasked_result_diverges_in_whatever_scope() -> None:
    asked = cursor(entry("|a#1"), entry("/child#1|b#1"))
    asked.ask("", "a", ONE)
    assert asked.end() == Diverged(2, "b(1)", "its end")
    assert asked.end(alive={"/child#1"}) is None


# ── never counted ────────────────────────────────────────────────────────────────────────────────


def test_results_of_scopes_that_do_not_exist_yet_do_not_count_for_a_fresh_call() -> None:
    assert cursor(entry("/later#1|b#1")).ask("", "a", ONE) == Fresh("|a#1")


def test_cut_calls_do_not_count() -> None:
    asked = cursor(entry("|a#1", "cut"))
    assert asked.ask("", "b", ONE) == Fresh("|b#1")
    assert asked.end() is None


def test_a_result_that_was_recorded_and_then_cut_does_not_count_and_is_cut() -> None:
    asked = cursor(entry("|a#1"), entry("|a#1", "cut"))
    assert asked.in_order() == [2]
    assert type(asked.ask("", "a", ONE)) is Cut
    assert asked.end() is None


def test_intents_without_an_outcome_do_not_count_and_are_uncertain_when_asked() -> None:
    intent = entry("|pay#1", "intent", "effect")
    assert cursor(intent).ask("", "other", ONE) == Fresh("|other#1")
    assert cursor(intent).ask("", "pay", ONE) == Uncertain("|pay#1", 1, intent)
    assert cursor(intent).ask("", "pay", TWO) == Diverged(1, "pay(1)", "pay(2)", "arguments")


def test_entries_inside_a_step_do_not_count() -> None:
    asked = cursor(entry("|a#1|pay#1", op="effect"))
    assert asked.ask("", "b", ONE) == Fresh("|b#1")
    assert asked.end() is None and asked.in_order() == []


def test_marks_of_patched_progress_and_streams_do_not_count() -> None:
    asked = cursor(
        entry("|patched.x#1", op="patched"), entry("|a#1|progress", op="progress"), entry("|s#1|1", op="stream")
    )
    assert asked.ask("", "a", ONE) == Fresh("|a#1")
    assert asked.end() is None


# ── inside a body ────────────────────────────────────────────────────────────────────────────────


def test_a_body_that_is_tried_again_meets_what_it_recorded_the_first_time() -> None:
    asked = cursor()
    assert asked.ask("|a#1", "pay", ONE, in_body=True) == Fresh("|a#1|pay#1")
    done = entry("|a#1|pay#1", op="effect")
    asked.learn(1, done)
    asked.begin_again("|a#1")
    assert asked.ask("|a#1", "pay", ONE, in_body=True) == Recorded("|a#1|pay#1", 1, done)
    asked.begin_again("|a#1")
    assert asked.ask("|a#1", "pay", ONE, in_body=True) == Recorded("|a#1|pay#1", 1, done)


def test_the_order_holds_results_and_cuts_and_not_what_was_had_at_once() -> None:
    at_once = (entry("|c#1", op="inline"), entry("|recorded.now#1", op="now"))
    asked = cursor(entry("|a#1"), entry("|b#1", "cut"), *at_once, entry("|d#1"))
    assert asked.in_order() == [1, 2, 5]
