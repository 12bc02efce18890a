"""What memory layers keep: one value per key, with a version, for as long as its task lives."""

from __future__ import annotations

import pytest

from perdure._store import Engine
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
