"""The journal: entries of an attempt, in order, without a hole."""

from __future__ import annotations

import pytest

from perdure._store import Committer, Engine, Fence, Write
from perdure.errors import LeaseLost
from tests.store.kit import UIDS, Hand, commit_all, unchanged, write
from tests.store.test_many_functions import start

UID = UIDS[0]


def test_entries_come_back_in_order(hand: Hand) -> None:
    epoch = hand.running()
    for position in (0, 1, 2, 10, 3):
        assert hand.append(UID, epoch, position) == (position,)
    assert hand.journal(UID) == [(n, f"entry 1.{n}".encode()) for n in (0, 1, 2, 3, 10)]


def test_an_entry_may_be_empty_or_any_bytes(hand: Hand) -> None:
    epoch = hand.running()
    every_byte = bytes(range(256))
    hand.append(UID, epoch, 0, entry=b"")
    hand.append(UID, epoch, 1, entry=every_byte)
    assert hand.journal(UID) == [(0, b""), (1, every_byte)]


def test_a_position_is_written_once(hand: Hand) -> None:
    epoch = hand.running()
    hand.append(UID, epoch, 0, entry=b"first")
    with unchanged(hand.engine):
        assert hand.append(UID, epoch, 0, entry=b"second") is None


def test_a_line_has_its_own_positions(hand: Hand) -> None:
    epoch = hand.running()
    assert hand.append(UID, epoch, 0) and hand.append(UID, epoch, 0, line=2)
    assert hand.journal(UID, 2) == [(0, b"entry 2.0")]
    assert hand.journal(UID, 3) == []


def test_journals_of_two_tasks_are_two(hand: Hand) -> None:
    first = hand.running(UID, "alpha")
    second = hand.running(UIDS[1], "beta")
    assert hand.append(UID, first, 0) and hand.append(UIDS[1], second, 0)
    assert len(hand.journal(UID)) == len(hand.journal(UIDS[1])) == 1


def test_a_batch_of_entries_is_one_transaction_in_order(hand: Hand) -> None:
    epoch = hand.running()
    writes = [write("append_entry", hand.entry(UID, epoch, n)) for n in range(300)]
    assert commit_all(hand.engine, writes) == [(n,) for n in range(300)]
    assert [position for position, _ in hand.journal(UID)] == list(range(300))


def test_in_a_batch_a_refused_write_leaves_the_others(hand: Hand, other: Hand) -> None:
    """They belong to other attempts: what was refused is nobody's fault but its own."""
    epoch = hand.running(UID, "alpha")
    stale = other.running(UIDS[1], "beta")
    hand.claim(UIDS[1])
    writes = [
        write("append_entry", hand.entry(UID, epoch, 0)),
        write("append_entry", other.entry(UIDS[1], stale, 0), key="main\0beta"),
        write("append_entry", hand.entry(UID, epoch, 1)),
    ]
    assert commit_all(hand.engine, writes) == [(0,), None, (1,)]
    assert len(hand.journal(UID)) == 2 and hand.journal(UIDS[1]) == []


@pytest.mark.parametrize("stale_at", [0, 3, 40, 99])
def test_in_a_long_run_of_entries_only_the_stale_ones_are_refused(hand: Hand, other: Hand, stale_at: int) -> None:
    """Many entries go in by one statement: the fence has to hold for each of them."""
    epoch = hand.running(UID, "alpha")
    stale = other.running(UIDS[1], "beta")
    hand.claim(UIDS[1])
    writes = [write("append_entry", hand.entry(UID, epoch, n)) for n in range(100)]
    writes[stale_at] = write("append_entry", other.entry(UIDS[1], stale, stale_at), key="main\0beta")
    expected = [None if n == stale_at else (n,) for n in range(100)]
    assert commit_all(hand.engine, writes) == expected
    assert [n for n, _ in hand.journal(UID)] == [n for n in range(100) if n != stale_at]
    assert hand.journal(UIDS[1]) == []


@pytest.mark.parametrize("taken", [0, 5, 63, 64, 99])
def test_in_a_long_run_of_entries_a_taken_position_keeps_what_it_had(hand: Hand, taken: int) -> None:
    epoch = hand.running()
    hand.append(UID, epoch, taken, entry=b"first")
    writes = [write("append_entry", hand.entry(UID, epoch, n)) for n in range(100)]
    assert commit_all(hand.engine, writes) == [None if n == taken else (n,) for n in range(100)]
    assert dict(hand.journal(UID))[taken] == b"first" and len(hand.journal(UID)) == 100


def test_an_entry_that_is_refused_leaves_no_hole_behind_it(engine: Engine) -> None:
    """The writes after it are in the same batch, before anybody knows that it was refused."""
    hand = Hand(engine)
    epoch = hand.running()
    hand.append(UID, epoch, 1, entry=b"somebody else's")
    committer, fence = Committer(engine), Fence("alpha", UID, epoch, "w1")
    entries = [hand.entry(UID, epoch, position) for position in range(4)]
    writes = [
        Write(committer, "append_entry", entry, key="main\0alpha", fence=fence, ordered=True) for entry in entries
    ]
    for one in writes:
        committer.enqueue(one)
    committer.flush()
    committer.close()
    assert hand.journal(UID) == [(0, b"entry 1.0"), (1, b"somebody else's")]
    assert writes[0].outcome() == (0,) and writes[1].outcome() is None
    for late in writes[2:]:
        with pytest.raises(LeaseLost):
            late.outcome()


@pytest.mark.req("R34")
def test_how_far_a_journal_has_come_is_kept_apart_from_its_entries(hand: Hand) -> None:
    uid, epoch = UIDS[1], 1
    hand.register()
    assert commit_all(hand.engine, [start(1, "t1")]) == [(uid,)]

    def end_of() -> tuple[int, int]:
        line, position = hand.engine.query("get_call", {"uid": uid})[0][-2:]
        return line, position

    assert end_of() == (0, 0)
    for line, position, end in ((1, 1, (1, 1)), (1, 3, (1, 3)), (1, 2, (1, 3)), (2, 0, (2, 0)), (1, 9, (2, 0))):
        assert hand.append(uid, epoch, position, line=line) == (position,)
        assert end_of() == end
    assert hand.append(uid, epoch + 7, 50, line=3) is None
    assert end_of() == (2, 0)
