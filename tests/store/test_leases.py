"""The right to write for a task: taken, given back, taken over."""

from __future__ import annotations

from typing import Any

import pytest

from perdure._store import AttemptRow
from tests.store.kit import UIDS, Hand, at_once, dump, unchanged

UID = UIDS[0]


def attempts(hand: Hand) -> list[AttemptRow]:
    return [AttemptRow(*row) for row in hand.engine.query("read_attempts", {"uid": UID})]


@pytest.mark.req("R13")
def test_a_claim_raises_the_epoch_and_begins_an_attempt(hand: Hand) -> None:
    hand.register()
    hand.create(UID)
    assert hand.claim(UID, at=500) == (1,)
    holder = hand.holder(UID)
    assert holder == (1, "w1", 0, "here", "boot", "ns", 7, 70, "ada", 5000)
    assert attempts(hand) == [AttemptRow(1, "w1", "here", 7, "ada", "agent", 500, None, "")]
    task = hand.task(UID)
    assert (task.attempts, task.started_at, task.version, task.event_count) == (1, 500, 2, 2)


def test_a_pending_task_runs_once_it_is_claimed(hand: Hand) -> None:
    hand.create(UID, status="pending")
    assert hand.claim(UID, before="pending")
    assert hand.task(UID).status == "running"


@pytest.mark.req("R13", "R56")
def test_a_takeover_ends_the_attempt_before_it(hand: Hand, other: Hand) -> None:
    hand.running()
    assert other.claim(UID, at=900, former="its process died") == (2,)
    first, second = attempts(hand)
    assert (first.worker, first.ended_at, first.ended) == ("w1", 900, "its process died")
    assert (second.number, second.worker, second.ended_at) == (2, "w2", None)


def test_the_start_of_the_first_attempt_stays(hand: Hand, other: Hand) -> None:
    hand.running()
    started = hand.task(UID).started_at
    other.claim(UID, at=99_000)
    assert (hand.task(UID).started_at, hand.task(UID).attempts) == (started, 2)


@pytest.mark.parametrize(
    "seen",
    [
        {"seen_epoch": 0},
        {"seen_epoch": 2},
        {"seen_worker": None},
        {"seen_worker": "w3"},
        {"before": "pending"},
        {"before": "paused"},
    ],
)
def test_a_claim_of_a_lease_that_was_seen_otherwise_is_refused(hand: Hand, other: Hand, seen: dict[str, Any]) -> None:
    hand.running()
    with unchanged(hand.engine):
        assert other.claim(UID, **seen) is None


@pytest.mark.parametrize("verb", ["pause", "complete", "fail", "cancel"])
def test_a_claim_is_refused_once_the_status_has_changed(hand: Hand, verb: str) -> None:
    hand.create(UID)
    hand.move(UID, verb)
    with unchanged(hand.engine):
        assert hand.claim(UID, before="running") is None


def test_what_is_not_there_is_not_claimed(hand: Hand) -> None:
    with unchanged(hand.engine):
        assert hand.claim(UID, seen_epoch=0, seen_worker=None) is None


@pytest.mark.req("R49")
def test_of_many_that_claim_at_once_one_does(crowd: list[Hand]) -> None:
    crowd[0].create(UID)
    rows = at_once(crowd, lambda hand: hand.claim(UID, seen_epoch=0, seen_worker=None))
    (winner,) = [hand.worker for hand, row in zip(crowd, rows, strict=True) if row is not None]
    holder = crowd[0].holder(UID)
    assert holder is not None and (holder.epoch, holder.worker) == (1, winner)
    assert [attempt.worker for attempt in attempts(crowd[0])] == [winner]


def test_a_release_frees_the_lease_and_ends_the_attempt(hand: Hand) -> None:
    epoch = hand.running()
    version = hand.task(UID).version
    assert hand.release(UID, epoch, at=700, ended="released") == (epoch,)
    holder = hand.holder(UID)
    assert holder == (epoch, None, *[None] * 8)
    assert [attempt[-2:] for attempt in attempts(hand)] == [(700, "released")]
    task = hand.task(UID)
    assert (task.status, task.version, task.event_count) == ("running", version + 1, version + 1)


def test_after_a_release_the_next_claim_has_the_next_epoch(hand: Hand, other: Hand) -> None:
    epoch = hand.running()
    hand.release(UID, epoch)
    assert other.claim(UID) == (epoch + 1,)
    assert [attempt.ended for attempt in attempts(hand)] == ["released", ""]


def test_leases_of_two_tasks_are_two(hand: Hand, other: Hand) -> None:
    epoch = hand.running()
    other.create(UIDS[1], "beta")
    other.claim(UIDS[1])
    assert hand.append(UID, epoch, 0)
    assert dump(hand.engine)[f"{UIDS[1]}: holder"][0][:2] == (1, "w2")


@pytest.mark.req("R13", "R55")
def test_a_free_lease_is_taken_once(hand: Hand, other: Hand) -> None:
    hand.register()
    hand.create(UID)
    assert hand.claim_free(UID, at=500) == (UID,)
    assert attempts(hand) == [AttemptRow(1, "w1", "here", 7, "ada", "", 500, None, "")]
    with unchanged(hand.engine):
        assert other.claim_free(UID) is None, "it is not free"
        assert other.claim_free(UID, seen_epoch=0) is None
    hand.release(UID, 1)
    with unchanged(hand.engine):
        assert other.claim_free(UID, seen_epoch=0) is None, "somebody had it meanwhile"
    assert other.claim_free(UID) == (UID,)
    assert hand.task(UID).attempts == 2
