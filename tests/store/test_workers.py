"""Processes, as others see them: registered, beating, forgotten."""

from __future__ import annotations

import pytest

from tests.store.kit import UIDS, Hand, dump, unchanged

UID = UIDS[0]


def test_a_process_is_kept_as_others_will_look_for_it(hand: Hand) -> None:
    assert hand.register(pid_start=1 << 50, lease_ms=5000, at=12) == ("w1",)
    assert dump(hand.engine) == {
        "workers": [("w1", 0, "here", "boot", "ns", 7, 1 << 50, "ada", 5000, 12, 0, "", "")],
    }


def test_registering_again_is_a_beat(hand: Hand) -> None:
    hand.register()
    assert hand.register(host="elsewhere", pid=8) == ("w1",)
    assert dump(hand.engine)["workers"] == [("w1", 1, "here", "boot", "ns", 7, 70, "ada", 5000, 1, 0, "", "")]


@pytest.mark.req("R111")
def test_a_beat_is_one_more_than_the_last(hand: Hand, other: Hand) -> None:
    hand.register()
    other.register()
    assert [hand.do("beat", worker="w1") for _ in range(3)] == [(1,), (2,), (3,)]
    assert [row[:2] for row in dump(hand.engine)["workers"]] == [("w1", 3), ("w2", 0)]


@pytest.mark.req("R111")
def test_the_beats_show_at_every_lease_of_the_process(hand: Hand) -> None:
    hand.running(UIDS[0], "alpha")
    hand.running(UIDS[1], "beta")
    hand.do("beat", worker="w1")
    beats = [holder.beats for uid in UIDS[:2] if (holder := hand.holder(uid))]
    assert beats == [2, 2]  # one by registering again, one by beating


@pytest.mark.req("R55", "R111")
def test_who_has_beaten_since_it_was_taken_for_silent_keeps_its_lease(hand: Hand, other: Hand) -> None:
    epoch = hand.running()
    holder = hand.holder(UID)
    assert holder is not None
    seen = {"seen_epoch": epoch, "seen_worker": "w1", "seen_beats": holder.beats}
    loss = {"uid": UID, **seen, "ended": "silent", "losses": 1, "lost_position": 0, "not_before": None}
    hand.do("beat", worker="w1")
    with unchanged(hand.engine):
        assert other.do("reap", **loss, **other.event("worker_lost")) is None
    loss["seen_beats"] = (holder.beats or 0) + 1
    assert other.do("reap", **loss, **other.event("worker_lost")) == (epoch,)


def test_who_was_forgotten_does_not_beat(hand: Hand) -> None:
    hand.register()
    hand.do("forget_worker", worker="w1")
    with unchanged(hand.engine):
        assert hand.do("beat", worker="w1") is None


@pytest.mark.req("R105")
def test_who_holds_a_lease_is_not_forgotten(hand: Hand) -> None:
    epoch = hand.running()
    with unchanged(hand.engine):
        assert hand.do("forget_worker", worker="w1") is None
    hand.release(UID, epoch)
    assert hand.do("forget_worker", worker="w1") == ("w1",)
    assert "workers" not in dump(hand.engine)


def test_who_is_not_there_is_not_forgotten(hand: Hand, other: Hand) -> None:
    other.register()
    with unchanged(hand.engine):
        assert hand.do("forget_worker", worker="w1") is None


def test_the_leases_of_a_process_are_counted(hand: Hand, other: Hand) -> None:
    hand.running(UIDS[0], "alpha")
    hand.running(UIDS[1], "beta")
    other.running(UIDS[2], "gamma")
    assert [(row[0], row[10]) for row in dump(hand.engine)["workers"]] == [("w1", 2), ("w2", 1)]


def test_a_lease_of_an_unknown_process_names_it_all_the_same(hand: Hand) -> None:
    hand.create(UID)
    hand.claim(UID)
    assert hand.holder(UID) == (1, "w1", *[None] * 8)
