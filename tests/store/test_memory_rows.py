"""What memory layers keep: one value per key, with a version, for as long as its task lives."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import pytest

from perdure._store import Engine
from perdure._store.contract import Again
from tests.store.kit import UIDS, Hand, at_once


def kept(engine: Engine, key: str = "a", life: str = "") -> bytes | None:
    rows = engine.query("get_memory", {"namespace": "main", "life": life, "key": key})
    return rows[0][3] if rows else None


def test_a_value_is_kept_until_another_takes_its_place(hand: Hand, engine: Engine) -> None:
    assert hand.remember("a", b"one") == (1,)
    assert hand.remember("a", b"two") == (2,)
    assert kept(engine) == b"two"
    assert hand.forget("a") == (2,)
    assert kept(engine) is None
    assert hand.forget("a") is None


@pytest.mark.req("R14")
def test_a_value_made_for_another_version_is_refused(hand: Hand, engine: Engine) -> None:
    assert hand.remember("a", b"late", seen=1) is None
    assert hand.remember("a", b"first", seen=0) == (1,)
    assert hand.remember("a", b"second", seen=0) is None
    assert hand.remember("a", b"second", seen=1) == (2,)
    assert hand.remember("a", b"stale", seen=1) is None
    assert kept(engine) == b"second"


@pytest.mark.req("R131")
def test_a_value_whose_time_is_over_is_no_value_any_more(hand: Hand, engine: Engine) -> None:
    assert hand.remember("a", b"short", at=10, expires_at=20) == (1,)
    assert hand.remember("a", b"too early", at=19, seen=0) is None
    assert hand.remember("a", b"new", at=20, seen=0) == (2,)
    assert kept(engine) == b"new"


@pytest.mark.req("R14")
def test_of_several_first_values_one_is_kept(crowd: list[Hand]) -> None:
    answers = at_once(crowd, lambda hand: hand.remember("a", hand.worker.encode(), seen=0))
    assert sorted(answers, key=bool) == [None] * (len(crowd) - 1) + [(1,)]


@pytest.mark.req("R55", "R128")
def test_an_attempt_that_has_lost_its_lease_remembers_nothing(hand: Hand, other: Hand, engine: Engine) -> None:
    epoch = hand.running()
    ours = {"uid": UIDS[0], "owner": "alpha", "worker": hand.worker}
    assert hand.remember("a", b"ours", **ours, epoch=epoch) == (1,)
    other.register()
    assert other.claim(UIDS[0]) is not None
    assert hand.remember("a", b"late", **ours, epoch=epoch) is None
    assert hand.remember("b", b"late", **ours, epoch=epoch) is None
    assert (kept(engine, "a"), kept(engine, "b")) == (b"ours", None)


def test_what_a_task_remembers_goes_with_it_and_nothing_else_does(hand: Hand, engine: Engine) -> None:
    hand.running()
    hand.remember("a", b"its own", owner="alpha")
    hand.remember("b", b"of another", owner="beta")
    hand.remember("c", b"nobody's")
    hand.move(UIDS[0], "cancel")
    assert hand.delete(UIDS[0]) is not None
    assert [kept(engine, key) for key in "abc"] == [None, b"of another", b"nobody's"]


def test_a_task_begun_anew_remembers_nothing_and_the_old_one_keeps_its_own(hand: Hand, engine: Engine) -> None:
    hand.running()
    hand.remember("a", b"old", owner="alpha")
    hand.move(UIDS[0], "cancel")
    assert hand.restart(UIDS[0], UIDS[1]) is not None
    assert kept(engine) is None
    assert kept(engine, life=UIDS[0]) == b"old"
    hand.remember("a", b"new", owner="alpha")
    assert hand.delete(UIDS[0]) is not None
    assert (kept(engine), kept(engine, life=UIDS[0])) == (b"new", None)


@pytest.mark.req("R14")
def test_a_value_and_its_entry_are_written_together(hand: Hand, engine: Engine) -> None:
    epoch = hand.running()
    assert hand.remember_on_record(UIDS[0], epoch, 1, seen=0) == (1, 1)
    assert hand.remember_on_record(UIDS[0], epoch, 2, seen=1, value=b"second") == (2, 2)
    assert hand.remember_on_record(UIDS[0], epoch, 3, seen=1, value=b"stale") == (3, 0)
    assert [row[1] for row in hand.journal(UIDS[0])] == [b"kept", b"kept", b"refused"]
    assert kept(engine) == b"second"


@pytest.mark.req("R55")
def test_a_value_is_not_written_without_its_entry(hand: Hand, engine: Engine) -> None:
    epoch = hand.running()
    assert hand.remember_on_record(UIDS[0], epoch, 1) == (1, 1)
    assert hand.remember_on_record(UIDS[0], epoch, 1, value=b"its position is taken") is None
    assert hand.remember_on_record(UIDS[0], 9, 2, value=b"not our lease") is None
    assert [row[1] for row in hand.journal(UIDS[0])] == [b"kept"]
    assert kept(engine) == b"value"


# ── many at once ─────────────────────────────────────────────────────────────────────────────────


def test_many_values_are_kept_and_forgotten_together(hand: Hand, engine: Engine) -> None:
    hand.remember("b", b"old")
    hand.remember("c", b"old")
    rows = [
        {"key": "a", "value": b"new"},
        {"key": "b", "value": b"", "seen": 1},
        {"key": "c"},
        {"key": "é", "value": b"\0"},
    ]
    answer = hand.remember_all(rows)
    assert answer is not None
    assert json.loads(answer[0]) == [1, 2, 1, 1]
    assert [kept(engine, key) for key in "abcé"] == [b"new", b"", None, b"\0"]


def test_of_many_values_none_is_kept_when_one_is_for_another_version(hand: Hand, engine: Engine) -> None:
    hand.remember("b", b"old")
    for stale in ({"key": "b", "value": b"new", "seen": 2}, {"key": "b", "seen": 0}, {"key": "x", "seen": 1}):
        assert hand.remember_all([{"key": "a", "value": b"new"}, stale, {"key": "c", "value": b"new"}]) is None
    assert [kept(engine, key) for key in "abc"] == [None, b"old", None]


def test_among_many_a_value_whose_time_is_over_counts_as_none(hand: Hand, engine: Engine) -> None:
    hand.remember("a", b"short", at=10, expires_at=20)
    first = [{"key": "a", "value": b"new", "seen": 0, "expires_at": 40}]
    assert hand.remember_all(first, at=19) is None
    assert hand.remember_all(first, at=20) is not None
    assert engine.query("get_memory", {"namespace": "main", "life": "", "key": "a"})[0] == (2, 20, 40, b"new")


def test_an_attempt_that_has_lost_its_lease_writes_none_of_many(hand: Hand, other: Hand, engine: Engine) -> None:
    epoch = hand.running()
    ours = {"uid": UIDS[0], "worker": hand.worker, "epoch": epoch}
    assert hand.remember_all([{"key": "a", "value": b"ours", "owner": "alpha"}], **ours) is not None
    other.register()
    assert other.claim(UIDS[0]) is not None
    assert hand.remember_all([{"key": "a", "value": b"late"}, {"key": "b", "value": b"late"}], **ours) is None
    assert hand.remember_all([{"key": "a"}], **ours) is None
    assert (kept(engine, "a"), kept(engine, "b")) == (b"ours", None)


def test_of_several_that_add_the_same_keys_at_once_one_does(crowd: list[Hand], engine: Engine) -> None:
    def add(hand: Hand) -> object:
        value = hand.worker.encode()
        return hand.remember_all([{"key": key, "value": value, "seen": 0} for key in ("a", "b", "c")])

    answers = at_once(crowd, again(add))
    assert sum(answer is not None for answer in answers) == 1
    assert len({kept(engine, key) for key in "abc"}) == 1


def test_several_that_write_the_same_keys_at_once_all_do_one_after_the_other(crowd: list[Hand], engine: Engine) -> None:
    def write(hand: Hand) -> object:
        keys = ("a", "b", "c") if hand is crowd[0] else ("c", "b", "a")
        return hand.remember_all([{"key": key, "value": hand.worker.encode()} for key in keys])

    assert None not in at_once(crowd, again(write))
    rows = [engine.query("get_memory", {"namespace": "main", "life": "", "key": key})[0] for key in "abc"]
    assert {(row[0], row[3]) for row in rows} == {(len(crowd), rows[0][3])}


def again(act: Callable[[Hand], object]) -> Callable[[Hand], object]:
    """As the committer does when it is told to send a batch again."""

    def tried(hand: Hand) -> object:
        while True:
            with suppress(Again):
                return act(hand)

    return tried


# ── reading many ─────────────────────────────────────────────────────────────────────────────────


def test_a_scan_gives_the_live_values_of_a_range_in_either_order(hand: Hand, engine: Engine) -> None:
    for key in ("p/b", "p/a", "p/é", "q", "o"):
        hand.remember(key, key.encode())
    hand.remember("p/gone", b"", at=1, expires_at=2)
    hand.remember("p/z", b"other", namespace="else")
    asked = {"namespace": "main", "first": "p/", "below": "p0", "now": 5}
    rows = [(key, 1, key.encode()) for key in ("p/a", "p/b", "p/é")]
    assert engine.query("scan_memory", {**asked, "limit": 9}) == rows
    assert engine.query("scan_memory_back", {**asked, "limit": 2}) == [rows[2], rows[1]]
    keys = json.dumps(["q", "p/gone", "p/é", "nothing"])
    found = engine.query("get_memories", {"namespace": "main", "keys": keys, "now": 5})
    assert found == [("p/é", 1, "p/é".encode()), ("q", 1, b"q")]
