"""Checkpoints: made, gone back to, set aside, kept and pruned."""

from __future__ import annotations

import threading

import pytest

from perdure._store import Engine, FrameRow
from tests.store.kit import UIDS, Hand, dump, event, frame, unchanged

UID = UIDS[0]


def chain_of(hand: Hand, target: int) -> list[int]:
    return [row[0] for row in hand.engine.query("read_chain", {"uid": UID, "target": target})]


@pytest.fixture
def epoch(hand: Hand) -> int:
    return hand.running()


@pytest.fixture
def three(hand: Hand, epoch: int) -> int:
    """A task with a keyframe 1 and the deltas 2 and 3 after it."""
    hand.checkpoint(UID, epoch, parent=0, frame=b"one")
    hand.checkpoint(UID, epoch, **frame(1, base=1, content=b"two"))
    hand.checkpoint(UID, epoch, **frame(2, base=2, content=b"three"))
    return epoch


# ── checkpoint ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R16", "R17")
def test_a_checkpoint_is_the_state_and_keeps_all_it_was_given(hand: Hand, epoch: int) -> None:
    version = hand.task(UID).version
    given = frame(0, base=0, content=b"delta", label="half", cause="explicit", depth=2, position=9, chunks=3)
    assert hand.checkpoint(UID, epoch, **given, at=777) == (1, version + 1, "running")
    assert hand.frames(UID)[1] == FrameRow(
        seq=1,
        line=1,
        parent=0,
        base=0,
        at=777,
        label="half",
        cause="explicit",
        depth=2,
        author=event("", 0)["author"],
        size=10,
        stored=5,
        chain_size=5,
        chain_length=1,
        position=9,
        valid=True,
        superseded=False,
        pinned=False,
        chunks=3,
        frame=b"delta",
    )
    task = hand.task(UID)
    assert (task.seq, task.state_seq, task.updated_at, task.event_count) == (1, 1, 777, version + 1)


@pytest.mark.req("R14")
def test_a_checkpoint_made_from_another_state_is_refused(hand: Hand, epoch: int) -> None:
    hand.checkpoint(UID, epoch, parent=0)
    with unchanged(hand.engine):
        assert hand.checkpoint(UID, epoch, parent=0) is None
        assert hand.checkpoint(UID, epoch, parent=2) is None


@pytest.mark.req("R14")
def test_two_writers_never_lose_an_update(engine: Engine, second: Engine) -> None:
    """Both add one to the newest state they read, from the same lease; each sum is kept."""
    epoch = Hand(engine).running()
    rounds = 40

    def count_up(one: Engine) -> None:
        hand, done = Hand(one), 0
        while done < rounds:
            at = hand.task(UID).state_seq
            value = int(hand.frames(UID)[at].frame or b"0") if at else 0
            if hand.checkpoint(UID, epoch, **frame(at, content=str(value + 1).encode())):
                done += 1

    threads = [threading.Thread(target=count_up, args=(one,)) for one in (engine, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hand = Hand(engine)
    assert hand.frames(UID)[hand.task(UID).state_seq].frame == str(2 * rounds).encode()


@pytest.mark.parametrize("verb", ["complete", "fail", "cancel"])
def test_a_finished_task_takes_no_checkpoint(hand: Hand, epoch: int, verb: str) -> None:
    """Not even from somebody who has the lease: the move was told to leave it."""
    hand.move(UID, verb, ends=0)
    with unchanged(hand.engine):
        assert hand.checkpoint(UID, epoch, parent=0) is None
        assert hand.progress(UID, epoch) is None


@pytest.mark.req("R12")
def test_progress_is_kept_without_a_new_version(hand: Hand, epoch: int) -> None:
    before = hand.task(UID)
    assert hand.progress(UID, epoch, b"15/42", at=888) == (before.version,)
    assert hand.task(UID) == before._replace(progress=b"15/42", updated_at=888)


# ── rollback ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R18")
def test_a_rollback_makes_an_earlier_checkpoint_the_state(hand: Hand, three: int) -> None:
    before = hand.task(UID)
    assert hand.rollback(UID, 1, at=999) == (3, before.version + 1)
    task, frames = hand.task(UID), hand.frames(UID)
    assert (task.seq, task.state_seq, task.line, task.status) == (3, 1, 2, "running")
    assert {seq: row.superseded for seq, row in frames.items()} == {0: False, 1: False, 2: True, 3: True}
    assert task.event_count == before.event_count + 1
    holder = hand.holder(UID)
    assert holder is not None and (holder.epoch, holder.worker) == (three + 1, None)
    (attempt,) = dump(hand.engine)[f"{UID}: attempts"]
    assert attempt[-2:] == (999, "rolled back")


@pytest.mark.req("R18")
def test_after_a_rollback_the_next_checkpoint_is_on_the_new_line(hand: Hand, three: int) -> None:
    hand.rollback(UID, 1)
    (epoch,) = hand.claim(UID) or (0,)
    assert hand.checkpoint(UID, epoch, parent=1)
    made = hand.frames(UID)[4]
    assert (made.line, made.parent, made.superseded, hand.task(UID).state_seq) == (2, 1, False, 4)


def test_a_rollback_with_a_patch_adds_a_checkpoint_and_resumes(hand: Hand, three: int) -> None:
    hand.move(UID, "fail", epoch=three, error=b"oh")
    patched = frame(1, base=1, content=b"patched", cause="resume")
    row = hand.rollback(UID, 1, **patched, befores="failed,paused", after="running")
    task, frames = hand.task(UID), hand.frames(UID)
    assert row == (4, task.version)
    assert (task.status, task.state_seq, task.error, task.finished_at) == ("running", 4, None, None)
    assert (frames[4].line, frames[4].superseded, frames[4].frame) == (2, False, b"patched")
    assert [frames[seq].superseded for seq in (1, 2, 3)] == [False, True, True]


def test_a_rollback_without_a_resume_keeps_the_pause(hand: Hand, three: int) -> None:
    hand.move(UID, "pause", epoch=three, pause=b"why", pause_reason="rate_limit", due_at=5)
    hand.rollback(UID, 2)
    task = hand.task(UID)
    assert (task.status, task.pause, task.pause_reason, task.due_at) == ("paused", b"why", "rate_limit", 5)


def test_a_rollback_that_resumes_clears_the_pause(hand: Hand, three: int) -> None:
    hand.move(UID, "pause", epoch=three, pause=b"why", pause_reason="rate_limit", due_at=5)
    hand.rollback(UID, 2, befores="failed,paused", after="running")
    task = hand.task(UID)
    assert (task.status, task.pause, task.pause_reason, task.due_at) == ("running", None, None, None)


@pytest.mark.req("R14")
def test_a_rollback_of_a_task_that_changed_since_it_was_read_is_refused(hand: Hand, three: int) -> None:
    version = hand.task(UID).version
    hand.checkpoint(UID, three, parent=3)
    with unchanged(hand.engine):
        assert hand.rollback(UID, 1, version) is None


@pytest.mark.parametrize("verb", ["complete", "cancel"])
def test_what_is_over_for_good_is_not_rolled_back(hand: Hand, three: int, verb: str) -> None:
    hand.move(UID, verb)
    with unchanged(hand.engine):
        assert hand.rollback(UID, 1) is None


def test_a_rollback_to_what_was_pruned_meanwhile_is_refused(hand: Hand, three: int) -> None:
    """Pruning changes no version, so the version that was read does not tell."""
    hand.prune(UID, 0)
    with unchanged(hand.engine):
        assert hand.rollback(UID, 0) is None


@pytest.mark.req("R18")
def test_a_rollback_is_refused_when_the_journal_has_gone_on_since_it_was_read(hand: Hand, three: int) -> None:
    hand.append(UID, three, 1)
    hand.append(UID, three, 2)
    with unchanged(hand.engine):
        assert hand.rollback(UID, 1, seen=1) is None
    assert hand.rollback(UID, 1, seen=2) is not None
    assert hand.rollback(UID, 1, seen=0) is not None  # nothing is on the new line yet


# ── invalidate ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R92")
def test_invalid_checkpoints_are_marked_and_the_state_falls_back(hand: Hand, three: int) -> None:
    before = hand.task(UID)
    assert hand.invalidate(UID, [2, 3], target=1) == (before.version + 1,)
    assert {seq: row.valid for seq, row in hand.frames(UID).items()} == {0: True, 1: True, 2: False, 3: False}
    task = hand.task(UID)
    assert (task.state_seq, task.seq, task.event_count) == (1, 3, before.event_count + 1)
    assert hand.checkpoint(UID, three, parent=1) is not None


def test_a_task_that_changed_since_it_was_read_is_not_invalidated(hand: Hand, three: int) -> None:
    version = hand.task(UID).version
    hand.checkpoint(UID, three, parent=3)
    with unchanged(hand.engine):
        assert hand.invalidate(UID, [3], target=2, version=version) is None


def test_the_state_does_not_fall_back_to_what_was_pruned_meanwhile(hand: Hand, three: int) -> None:
    hand.prune(UID, 0)
    with unchanged(hand.engine):
        assert hand.invalidate(UID, [1, 2, 3], target=0) is None


# ── keeping and pruning ──────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R101")
def test_a_pinned_checkpoint_is_not_pruned_until_it_is_unpinned(hand: Hand, three: int) -> None:
    assert hand.pin(UID, 0) == (0,)
    assert hand.frames(UID)[0].pinned
    with unchanged(hand.engine):
        assert hand.prune(UID, 0) is None
    assert hand.pin(UID, 0, pinned=False) == (0,)
    assert hand.prune(UID, 0) == (0,)
    assert list(hand.frames(UID)) == [1, 2, 3]


def test_what_is_not_there_is_neither_pinned_nor_pruned_nor_rebased(hand: Hand, three: int) -> None:
    with unchanged(hand.engine):
        assert hand.pin(UID, 9) is None
        assert hand.prune(UID, 9) is None
        assert hand.rebase(UID, 9) is None
        assert hand.pin(UIDS[3], 0) is None
        assert hand.prune(UIDS[3], 0) is None


@pytest.mark.req("R105")
def test_the_state_is_never_pruned(hand: Hand, three: int) -> None:
    with unchanged(hand.engine):
        assert hand.prune(UID, 3) is None


@pytest.mark.req("R102")
def test_what_another_checkpoint_is_a_delta_of_is_not_pruned(hand: Hand, three: int) -> None:
    with unchanged(hand.engine):
        assert hand.prune(UID, 1) is None
        assert hand.prune(UID, 2) is None


@pytest.mark.req("R102")
def test_after_a_rebase_what_was_before_may_go(hand: Hand, three: int) -> None:
    before = hand.frames(UID)[3]
    assert hand.rebase(UID, 3, b"all of it", chunks=2) == (3,)
    assert hand.frames(UID)[3] == before._replace(
        base=None, frame=b"all of it", stored=9, chain_size=0, chain_length=0, chunks=2
    )
    assert chain_of(hand, 3) == [3]
    assert hand.prune(UID, 2) and hand.prune(UID, 1)
    assert chain_of(hand, 3) == [3]


def test_a_keyframe_is_not_rebased(hand: Hand, three: int) -> None:
    with unchanged(hand.engine):
        assert hand.rebase(UID, 1) is None


def test_a_pruned_checkpoint_takes_its_chunks_with_it_and_no_others(hand: Hand, three: int) -> None:
    hand.chunk(UID, "o1", 0)
    hand.chunk(UID, "o2", 0)
    hand.chunk(UIDS[1], "o1", 0)
    assert hand.prune(UID, 0, owner="o1")
    found = dump(hand.engine)
    assert f"{UID}: chunks o1" not in found
    assert found[f"{UID}: chunks o2"] == found[f"{UIDS[1]}: chunks o1"] == [(b"part",)]


def test_a_refused_prune_leaves_the_chunks(hand: Hand, three: int) -> None:
    hand.chunk(UID, "o1", 0)
    with unchanged(hand.engine):
        assert hand.prune(UID, 3, owner="o1") is None


def test_chunks_come_back_in_order_whatever_the_order_they_were_put_in(hand: Hand) -> None:
    for n in (10, 2, 0, 1):
        assert hand.chunk(UID, "o1", n, str(n).encode()) == (n,)
    assert dump(hand.engine)[f"{UID}: chunks o1"] == [(b"0",), (b"1",), (b"2",), (b"10",)]


def test_a_chunk_that_is_there_stays_as_it_is(hand: Hand) -> None:
    hand.chunk(UID, "o1", 0, b"first")
    with unchanged(hand.engine):
        assert hand.chunk(UID, "o1", 0, b"second") is None


# ── reading a chain ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R102")
def test_a_chain_is_the_keyframe_and_the_deltas_up_to_a_checkpoint(hand: Hand, three: int) -> None:
    assert [chain_of(hand, seq) for seq in (0, 1, 2, 3, 4)] == [[0], [1], [1, 2], [1, 2, 3], []]


def test_a_chain_ends_at_a_record_that_names_itself_as_its_base(hand: Hand, epoch: int) -> None:
    """Such a record is damaged; reading it must come to an end nevertheless."""
    hand.checkpoint(UID, epoch, **frame(0, base=1))
    assert chain_of(hand, 1) == [1]
