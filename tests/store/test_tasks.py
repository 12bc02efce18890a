"""A task's beginning and end: create, restart, archive, delete."""

from __future__ import annotations

import pytest

from perdure._model import GENESIS, chain
from perdure._store import TaskRow
from tests.store.kit import FINISHED, UIDS, Hand, at_once, dump, event, unchanged

UID, LATER = UIDS[0], UIDS[1]


# ── create ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R1")
def test_a_new_task_has_its_first_state_a_free_lease_and_one_event(hand: Hand) -> None:
    first = event("created", 1_000)
    assert hand.create(UID, "alpha", config=b"config", tags='{"team": "red"}', depends_on='["beta"]') == (UID,)
    assert hand.task(UID) == TaskRow(
        uid=UID,
        namespace="main",
        id="alpha",
        is_current=True,
        status="running",
        version=1,
        line=1,
        seq=0,
        state_seq=0,
        name="Name",
        description="What it is for",
        agent="agent",
        tags='{"team": "red"}',
        config=b"config",
        depends_on='["beta"]',
        pause_reason=None,
        pause=None,
        due_at=None,
        progress=None,
        result=None,
        error=None,
        attempts=0,
        event_count=1,
        event_head=chain(GENESIS, first["digest"]),
        created_at=1_000,
        started_at=None,
        updated_at=1_000,
        finished_at=None,
        archived_at=None,
    )
    found = dump(hand.engine)
    assert found[f"{UID}: holder"] == [(0, None, *[None] * 8)]
    assert found[f"{UID}: events"] == [
        (1, 1_000, "created", first["author"], first["body"], first["digest"], chain(GENESIS, first["digest"]))
    ]
    (state,) = hand.frames(UID).values()
    assert (state.seq, state.line, state.parent, state.base, state.frame) == (0, 1, None, None, b"state")
    assert (state.cause, state.label, state.depth, state.position) == ("created", "", 0, 0)
    assert (state.valid, state.superseded, state.pinned, state.chunks) == (True, False, False, 0)
    assert f"{UID}: attempts" not in found


def test_a_task_that_waits_for_others_begins_as_pending(hand: Hand) -> None:
    hand.create(UID, status="pending")
    assert hand.task(UID).status == "pending"


@pytest.mark.req("R6")
def test_an_id_in_use_is_refused(hand: Hand) -> None:
    hand.create(UID, "alpha")
    with unchanged(hand.engine):
        assert hand.create(LATER, "alpha") is None


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_a_finished_task_still_has_its_id(hand: Hand, end: str) -> None:
    hand.create(UID, "alpha")
    hand.move(UID, end)
    with unchanged(hand.engine):
        assert hand.create(LATER, "alpha") is None


def test_a_uid_in_use_is_refused(hand: Hand) -> None:
    hand.create(UID, "alpha")
    with unchanged(hand.engine):
        assert hand.create(UID, "beta") is None


def test_the_same_id_in_another_namespace_is_another_task(hand: Hand) -> None:
    hand.create(UID, "alpha")
    assert hand.create(LATER, "alpha", namespace="other")
    assert hand.task(UID).namespace == "main" and hand.task(LATER).namespace == "other"


def test_ids_differ_by_case_and_accent(hand: Hand) -> None:
    names = ("é", "e", "E", "e\u0301")
    assert all(hand.create(uid, name) for uid, name in zip(UIDS, names, strict=False))


@pytest.mark.req("R6")
def test_of_many_that_create_one_id_at_once_one_does(crowd: list[Hand]) -> None:
    uids = dict(zip((hand.worker for hand in crowd), UIDS, strict=False))
    rows = at_once(crowd, lambda hand: hand.create(uids[hand.worker], "alpha"))
    (winner,) = [row for row in rows if row is not None]
    (found,) = crowd[0].engine.query("get_history", {"namespace": "main", "id": "alpha"})
    assert TaskRow(*found).uid == winner[0]


# ── restart ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_a_finished_task_becomes_history_and_a_new_one_has_its_id(hand: Hand, end: str) -> None:
    hand.create(UID, "alpha")
    hand.move(UID, end)
    before = hand.task(UID)
    assert hand.restart(UID, LATER, "alpha") == (UID,)
    assert hand.task(UID) == before._replace(is_current=False)
    new = hand.task(LATER)
    assert (new.is_current, new.status, new.version, new.event_count) == (True, "running", 1, 1)
    assert hand.frames(LATER)[0].frame == b"state" and hand.holder(LATER) == (0, None, *[None] * 8)
    assert dump(hand.engine)["main/alpha: current"] == [new]


@pytest.mark.parametrize("status", ["pending", "running", "paused"])
def test_a_live_task_is_not_restarted(hand: Hand, status: str) -> None:
    hand.create(UID, "alpha", status="pending" if status == "pending" else "running")
    if status == "paused":
        hand.move(UID, "pause")
    with unchanged(hand.engine):
        assert hand.restart(UID, LATER, "alpha") is None


def test_history_is_not_restarted(hand: Hand) -> None:
    hand.create(UID, "alpha")
    hand.move(UID, "complete")
    hand.restart(UID, LATER, "alpha")
    hand.move(LATER, "complete")
    with unchanged(hand.engine):
        assert hand.restart(UID, UIDS[2], "alpha") is None
    assert hand.restart(LATER, UIDS[2], "alpha")


def test_a_uid_in_use_or_another_id_takes_nobodys_place(hand: Hand) -> None:
    hand.create(UID, "alpha")
    hand.create(LATER, "beta")
    hand.move(UID, "complete")
    with unchanged(hand.engine):
        assert hand.restart(UID, LATER, "alpha") is None
        assert hand.restart(UID, UID, "alpha") is None
        assert hand.restart(UID, UIDS[2], "beta") is None
    assert hand.restart(UID, UIDS[2], "alpha") == (UID,)


def test_what_is_not_there_is_not_restarted(hand: Hand) -> None:
    hand.create(UID, "alpha")
    with unchanged(hand.engine):
        assert hand.restart(UIDS[5], LATER, "alpha") is None


# ── archive ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R8")
@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_a_finished_task_is_archived_and_brought_back(hand: Hand, end: str) -> None:
    hand.create(UID)
    hand.move(UID, end)
    version = hand.task(UID).version
    assert hand.archive(UID, 99) == (version + 1,)
    assert hand.task(UID).archived_at == 99
    assert hand.archive(UID, None) == (version + 2,)
    assert hand.task(UID).archived_at is None
    assert hand.task(UID).event_count == version + 2


@pytest.mark.req("R8")
@pytest.mark.parametrize("status", ["pending", "running", "paused"])
def test_a_live_task_is_not_archived(hand: Hand, status: str) -> None:
    hand.create(UID, status="pending" if status == "pending" else "running")
    if status == "paused":
        hand.move(UID, "pause")
    with unchanged(hand.engine):
        assert hand.archive(UID) is None


# ── delete ───────────────────────────────────────────────────────────────────────────────────────


def busy_life(hand: Hand, uid: str, id: str) -> None:
    """A task with a row in every table, finished."""
    epoch = hand.running(uid, id)
    hand.chunk(uid, "o1", 0)
    hand.append(uid, epoch, 0)
    hand.checkpoint(uid, epoch, parent=0)
    hand.progress(uid, epoch)
    hand.move(uid, "complete", epoch=epoch, result=b"42")


@pytest.mark.req("R8")
def test_a_deleted_task_leaves_nothing_but_its_tombstone(hand: Hand) -> None:
    busy_life(hand, UID, "alpha")
    task = hand.task(UID)
    assert hand.delete(UID) == (UID,)
    found = dump(hand.engine)
    (stone,) = found.pop("main: tombstones")
    assert stone[:7] == (UID, "main", "alpha", "completed", task.event_count, task.event_head, task.created_at)
    assert stone[7] > task.updated_at and stone[8] == event("", 0)["author"]
    assert list(found) == ["workers"]


def test_deleting_one_task_leaves_the_others(hand: Hand) -> None:
    busy_life(hand, UID, "alpha")
    before = dump(hand.engine)
    busy_life(hand, LATER, "beta")
    hand.delete(LATER)
    found = dump(hand.engine)
    del found["main: tombstones"]
    assert found | {"workers": before["workers"]} == before


def test_the_id_of_a_deleted_task_is_free(hand: Hand) -> None:
    busy_life(hand, UID, "alpha")
    hand.delete(UID)
    assert hand.create(LATER, "alpha")


def test_history_is_deleted_without_its_successor(hand: Hand) -> None:
    hand.create(UID, "alpha")
    hand.move(UID, "complete")
    hand.restart(UID, LATER, "alpha")
    assert hand.delete(UID)
    assert [row[0] for row in dump(hand.engine)["main/alpha: history"]] == [LATER]
    assert hand.task(LATER).is_current


def test_a_task_that_changed_since_it_was_read_is_not_deleted(hand: Hand) -> None:
    hand.create(UID)
    hand.move(UID, "complete")
    version = hand.task(UID).version
    hand.archive(UID)
    with unchanged(hand.engine):
        assert hand.delete(UID, version) is None


@pytest.mark.req("R8")
@pytest.mark.parametrize("status", ["pending", "running", "paused"])
def test_a_live_task_is_not_deleted(hand: Hand, status: str) -> None:
    hand.create(UID, status="pending" if status == "pending" else "running")
    if status == "paused":
        hand.move(UID, "pause")
    with unchanged(hand.engine):
        assert hand.delete(UID) is None


def test_finished_is_what_the_model_calls_finished() -> None:
    from perdure import _model

    assert set(FINISHED) == _model.FINISHED
