"""The status of a task: who may move it from where, and what goes with it in the same write."""

from __future__ import annotations

import pytest

from perdure._model import MOVES as MODEL
from tests.store.kit import FINISHED, MOVES, UIDS, Hand, at_once, dump, frame, unchanged

UID = UIDS[0]
STATUSES = ("pending", "running", "paused", *FINISHED)
PAIRS = [(status, verb) for status in STATUSES for verb in MOVES]


def put_into(hand: Hand, status: str) -> None:
    """A task without an attempt, with this status."""
    hand.create(UID, status="pending" if status == "pending" else "running")
    to_get_there = {"paused": "pause", "completed": "complete", "failed": "fail", "cancelled": "cancel"}
    if status in to_get_there:
        assert hand.move(UID, to_get_there[status])


def test_the_suite_knows_the_same_moves_as_the_model() -> None:
    model = {verb: (",".join(sorted(move.before)), move.after) for verb, move in MODEL.items() if verb != "begin"}
    assert model == MOVES


@pytest.mark.req("R2")
@pytest.mark.parametrize("status, verb", PAIRS)
def test_every_pair_of_status_and_verb(hand: Hand, status: str, verb: str) -> None:
    put_into(hand, status)
    befores, after = MOVES[verb]
    if status not in befores.split(","):
        with unchanged(hand.engine):
            assert hand.move(UID, verb) is None
        return
    before = hand.task(UID)
    assert hand.move(UID, verb) == (before.seq, before.version + 1)
    task = hand.task(UID)
    assert (task.status, task.event_count) == (after, before.event_count + 1)
    assert (task.finished_at is not None) == (after in FINISHED)


@pytest.mark.req("R29")
def test_a_pause_keeps_its_reason_and_when_it_is_due(hand: Hand) -> None:
    hand.create(UID)
    hand.move(UID, "pause", pause=b"why", pause_reason="scheduled_wait", due_at=5_000)
    task = hand.task(UID)
    assert (task.pause, task.pause_reason, task.due_at) == (b"why", "scheduled_wait", 5_000)


@pytest.mark.req("R30")
def test_a_resume_clears_the_pause(hand: Hand) -> None:
    hand.create(UID)
    hand.move(UID, "pause", pause=b"why", pause_reason="scheduled_wait", due_at=5_000)
    hand.move(UID, "resume")
    task = hand.task(UID)
    assert (task.status, task.pause, task.pause_reason, task.due_at) == ("running", None, None, None)


def test_a_resume_clears_the_error_and_the_end(hand: Hand) -> None:
    hand.create(UID)
    hand.move(UID, "fail", error=b"oh")
    assert hand.task(UID).error == b"oh" and hand.task(UID).finished_at is not None
    hand.move(UID, "resume")
    assert (hand.task(UID).error, hand.task(UID).finished_at) == (None, None)


@pytest.mark.req("R28")
def test_a_pause_and_its_checkpoint_are_one_write(hand: Hand) -> None:
    epoch = hand.running()
    version = hand.task(UID).version
    given = frame(0, content=b"at the pause", label="here", position=4)
    assert hand.move(UID, "pause", epoch=epoch, **given) == (1, version + 1)
    task, made = hand.task(UID), hand.frames(UID)[1]
    assert (task.status, task.seq, task.state_seq, task.event_count) == ("paused", 1, 1, version + 1)
    assert (made.frame, made.parent, made.label, made.position) == (b"at the pause", 0, "here", 4)
    assert made.at == task.updated_at


def test_a_checkpoint_of_another_state_refuses_the_whole_move(hand: Hand) -> None:
    epoch = hand.running()
    hand.checkpoint(UID, epoch, parent=0)
    with unchanged(hand.engine):
        assert hand.move(UID, "pause", epoch=epoch, **frame(0)) is None


def test_history_does_not_run_again_beside_its_successor(hand: Hand) -> None:
    """A handle from before open(again=True) still names the old task, which had failed."""
    hand.create(UID, "alpha")
    hand.move(UID, "fail")
    hand.restart(UID, UIDS[1], "alpha")
    with unchanged(hand.engine):
        assert hand.move(UID, "resume") is None


@pytest.mark.req("R14")
def test_a_move_that_insists_on_a_version_is_refused_on_another(hand: Hand) -> None:
    hand.create(UID)
    with unchanged(hand.engine):
        assert hand.move(UID, "pause", version=7) is None
    assert hand.move(UID, "pause", version=1)


def test_the_holders_move_ends_its_attempt(hand: Hand) -> None:
    epoch = hand.running()
    hand.move(UID, "pause", epoch=epoch, ended="paused")
    holder = hand.holder(UID)
    assert holder is not None and (holder.epoch, holder.worker) == (epoch, None)
    (attempt,) = dump(hand.engine)[f"{UID}: attempts"]
    assert attempt[-2:] == (hand.task(UID).updated_at, "paused")


def test_a_pause_from_outside_leaves_the_holder_its_lease(hand: Hand, other: Hand) -> None:
    """So that it can still store its last state."""
    epoch = hand.running()
    other.move(UID, "pause")
    assert hand.task(UID).status == "paused"
    assert hand.checkpoint(UID, epoch, parent=0) == (1, hand.task(UID).version, "paused")


@pytest.mark.req("R4")
def test_a_result_is_kept(hand: Hand) -> None:
    epoch = hand.running()
    hand.move(UID, "complete", epoch=epoch, result=b"42")
    assert (hand.task(UID).status, hand.task(UID).result) == ("completed", b"42")


@pytest.mark.req("R32")
def test_of_many_that_resume_at_once_one_does(crowd: list[Hand]) -> None:
    crowd[0].create(UID)
    crowd[0].move(UID, "pause")
    rows = at_once(crowd, lambda hand: hand.move(UID, "resume"))
    assert sorted(rows, key=str) == [(0, 3), None, None, None, None]
