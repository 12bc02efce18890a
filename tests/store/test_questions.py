"""The questions of durable functions: asked once, answered once, and signals that find the one that waits."""

from __future__ import annotations

import pytest

from perdure._store import Row
from tests.store.kit import UIDS, Hand, at_once, unchanged

UID = UIDS[0]


def questions(hand: Hand) -> dict[str, Row]:
    return {row[0]: row for row in hand.engine.query("read_pauses", {"uid": UID})}


def answers(hand: Hand) -> dict[str, bytes | None]:
    return {path: row[6] for path, row in questions(hand).items()}


def takers(hand: Hand) -> list[str | None]:
    return [row[5] for row in hand.engine.query("read_signals", {"uid": UID})]


@pytest.mark.req("R34")
def test_a_question_asked_again_is_the_same_question(hand: Hand) -> None:
    epoch = hand.running()
    assert hand.ask(UID, epoch, question=b"why?") == ("1",)
    with unchanged(hand.engine):
        assert hand.ask(UID, epoch, question=b"why not?") == ("1",)


@pytest.mark.req("R32")
def test_the_first_answer_stands(hand: Hand) -> None:
    epoch = hand.running()
    hand.ask(UID, epoch)
    assert hand.answer(UID, answer=b"yes") == ("1",)
    with unchanged(hand.engine):
        assert hand.answer(UID, answer=b"no") is None
    assert answers(hand) == {"1": b"yes"}


@pytest.mark.req("R32")
def test_an_answer_for_another_line_is_refused(hand: Hand) -> None:
    epoch = hand.running()
    hand.ask(UID, epoch)
    with unchanged(hand.engine):
        assert hand.answer(UID, line=2) is None
    assert hand.answer(UID, line=1) == ("1",)


def test_the_inbox_lists_open_questions_by_their_expiry(hand: Hand) -> None:
    epoch = hand.running()
    for path, expires in (("1", None), ("2", 50), ("3", 20), ("4", 30)):
        hand.ask(UID, epoch, path, expires_at=expires)
    hand.ask(UID, epoch, "5", reason="scheduled_wait", expires_at=10)
    hand.answer(UID, "4")
    place = {"expires": -1, "asked": 0, "uid": "", "path": ""}
    asked = {"namespace": "main", "only": None, "kinds": "input", "limit": 10, **place}
    rows = hand.engine.query("inbox_questions", asked)
    assert [row[3] for row in rows] == ["3", "2", "1"]
    after = {"expires": 20, "asked": rows[0][7], "uid": UID, "path": "3"}
    assert [row[3] for row in hand.engine.query("inbox_questions", {**asked, **after, "limit": 1})] == ["2"]
    assert hand.engine.query("count_inbox", {"namespace": "main"}) == [("input", 3)]


@pytest.mark.req("R32")
def test_of_many_that_answer_at_once_one_does(crowd: list[Hand]) -> None:
    epoch = crowd[1].running()
    crowd[1].ask(UID, epoch)
    rows = at_once(crowd, lambda hand: hand.answer(UID, answer=hand.worker.encode()))
    (winner,) = [hand.worker for hand, row in zip(crowd, rows, strict=True) if row is not None]
    assert answers(crowd[0]) == {"1": winner.encode()}


def test_an_answer_wakes_a_task_that_waits(hand: Hand) -> None:
    epoch = hand.running()
    hand.ask(UID, epoch)
    assert hand.suspend(UID, epoch, "1")
    assert hand.task(UID).status == "paused"
    hand.answer(UID)
    task = hand.task(UID)
    assert (task.status, task.pause, task.pause_reason) == ("running", None, None)


def test_a_task_that_was_answered_meanwhile_does_not_go_to_sleep(hand: Hand) -> None:
    epoch = hand.running()
    hand.ask(UID, epoch)
    hand.answer(UID)
    with unchanged(hand.engine):
        assert hand.suspend(UID, epoch, "1") is None


def test_a_signal_answers_the_oldest_question_that_waits_for_it(hand: Hand) -> None:
    epoch = hand.running()
    hand.ask(UID, epoch, "1", "news")
    hand.ask(UID, epoch, "2", "news")
    hand.ask(UID, epoch, "3", "other")
    assert hand.signal(UID, "news") == (1,)
    assert answers(hand) == {"1": b"hello", "2": None, "3": None} and takers(hand) == ["1"]


@pytest.mark.req("R43")
def test_a_signal_that_came_early_is_the_answer_at_once(hand: Hand) -> None:
    epoch = hand.running()
    hand.signal(UID, "news", b"first")
    hand.signal(UID, "news", b"second")
    hand.ask(UID, epoch, "1", "news")
    assert answers(hand) == {"1": b"first"} and takers(hand) == ["1", None]
    hand.ask(UID, epoch, "2", "news")
    assert answers(hand) == {"1": b"first", "2": b"second"} and takers(hand) == ["1", "2"]


@pytest.mark.req("R43")
def test_a_question_that_has_its_answer_takes_no_signal_when_it_is_asked_again(hand: Hand) -> None:
    """A replay asks every question again; the signal is for the next one."""
    epoch = hand.running()
    hand.ask(UID, epoch, "1", "news")
    hand.answer(UID, "1", b"by hand")
    hand.signal(UID, "news")
    with unchanged(hand.engine):
        assert hand.ask(UID, epoch, "1", "news") == ("1",)
    assert takers(hand) == [None]


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_what_has_ended_takes_neither_answer_nor_signal(hand: Hand, end: str) -> None:
    epoch = hand.running()
    hand.ask(UID, epoch)
    hand.move(UID, end)
    with unchanged(hand.engine):
        assert hand.answer(UID) is None
        assert hand.signal(UID, "news") is None


# ── looking again ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R49")
def test_only_the_one_who_saw_when_a_question_was_due_puts_it_off(hand: Hand) -> None:
    hand.ask(UID, hand.running(), due_at=10)
    seen = {"uid": UID, "path": "1", "seen_due_at": 10}
    assert hand.do("rearm_pause", **seen, due_at=20, question=b"and now?") == ("1",)
    with unchanged(hand.engine):
        assert hand.do("rearm_pause", **seen, due_at=30, question=b"late") is None
        assert hand.do("remind_pause", **seen, due_at=30, **hand.event("reminded")) is None
    assert hand.do("remind_pause", **{**seen, "seen_due_at": 20}, due_at=None, **hand.event("reminded")) == ("1",)
    assert questions(hand)["1"][3:6:2] == (b"and now?", None)


@pytest.mark.req("R49")
def test_an_answered_question_is_not_put_off(hand: Hand) -> None:
    hand.ask(UID, hand.running(), due_at=10)
    hand.answer(UID)
    with unchanged(hand.engine):
        assert hand.do("rearm_pause", uid=UID, path="1", seen_due_at=10, due_at=20, question=b"late") is None


@pytest.mark.req("R49")
def test_only_the_one_who_saw_when_a_paused_task_was_due_puts_it_off(hand: Hand) -> None:
    hand.running()
    hand.move(UID, "pause", pause=b"why", pause_reason="scheduled_wait", due_at=5)
    assert hand.do("rearm_task", uid=UID, seen_due_at=5, due_at=9, pause=b"later") is not None
    with unchanged(hand.engine):
        assert hand.do("rearm_task", uid=UID, seen_due_at=5, due_at=7, pause=b"late") is None
    assert (hand.task(UID).due_at, hand.task(UID).pause) == (9, b"later")


@pytest.mark.req("R38")
def test_an_answer_leaves_a_task_alone_that_somebody_has_paused(hand: Hand) -> None:
    hand.ask(UID, hand.running())
    hand.move(UID, "pause", pause=b"hold it", pause_reason="human_input")
    assert hand.answer(UID) == ("1",)
    assert (hand.task(UID).status, hand.task(UID).pause) == ("paused", b"hold it")


@pytest.mark.parametrize("how", ["begin_line", "rollback"])
def test_on_another_line_only_what_is_asked_of_an_effect_stays(hand: Hand, how: str) -> None:
    epoch = hand.running()
    hand.checkpoint(UID, epoch, parent=0, frame=b"one")
    for path, topic in (("1", None), ("2", "paid"), ("3", "~effect"), ("4", "~effect")):
        hand.ask(UID, epoch, path, topic)
    hand.answer(UID, path="4", answer=b"done")
    assert hand.begin_line(UID, epoch) if how == "begin_line" else hand.rollback(UID, 1)
    assert answers(hand) == {"~1~3": None, "~1~4": b"done"}
