"""One writer: every write of an attempt carries its lease's epoch and is refused when the epoch is old."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from perdure._store import Engine, Row
from tests.store.kit import UIDS, Hand, frame, unchanged

UID = UIDS[0]

# Every verb that only the holder of the lease may do, as it is sent with an epoch.
FENCED: dict[str, Callable[[Hand, int], Row | None]] = {
    "append_entry": lambda hand, epoch: hand.append(UID, epoch, 0),
    "checkpoint": lambda hand, epoch: hand.checkpoint(UID, epoch, parent=0),
    "mark_progress": lambda hand, epoch: hand.progress(UID, epoch),
    "release": lambda hand, epoch: hand.release(UID, epoch),
    "complete": lambda hand, epoch: hand.move(UID, "complete", epoch=epoch, result=b"42"),
    "fail": lambda hand, epoch: hand.move(UID, "fail", epoch=epoch, error=b"oh"),
    "pause": lambda hand, epoch: hand.move(UID, "pause", epoch=epoch, pause=b"why", pause_reason="rate_limit"),
    "open_pause": lambda hand, epoch: hand.ask(UID, epoch),
    "suspend": lambda hand, epoch: hand.suspend(UID, epoch),
    "begin_line": lambda hand, epoch: hand.begin_line(UID, epoch),
    "pause with a checkpoint": lambda hand, epoch: hand.move(UID, "pause", epoch=epoch, **frame(0)),
}


@pytest.fixture(params=FENCED)
def fenced(request: pytest.FixtureRequest) -> Callable[[Hand, int], Row | None]:
    return FENCED[request.param]


def test_the_holder_may_write(fenced: Callable[[Hand, int], Row | None], hand: Hand) -> None:
    assert fenced(hand, hand.running()) is not None


@pytest.mark.req("R55")
def test_a_write_with_an_old_epoch_is_refused(
    fenced: Callable[[Hand, int], Row | None], hand: Hand, other: Hand
) -> None:
    old = hand.running()
    other.claim(UID)
    with unchanged(hand.engine):
        assert fenced(hand, old) is None


def test_an_old_epoch_is_refused_even_if_the_same_process_holds_the_lease_again(
    fenced: Callable[[Hand, int], Row | None], hand: Hand, other: Hand
) -> None:
    old = hand.running()
    other.claim(UID)
    hand.claim(UID)
    with unchanged(hand.engine):
        assert fenced(hand, old) is None


def test_the_epoch_alone_is_not_enough(fenced: Callable[[Hand, int], Row | None], hand: Hand, other: Hand) -> None:
    epoch = hand.running()
    with unchanged(hand.engine):
        assert fenced(other, epoch) is None


def test_an_epoch_that_has_not_come_yet_is_refused(fenced: Callable[[Hand, int], Row | None], hand: Hand) -> None:
    epoch = hand.running()
    with unchanged(hand.engine):
        assert fenced(hand, epoch + 1) is None


def test_nothing_is_written_after_a_release(fenced: Callable[[Hand, int], Row | None], hand: Hand) -> None:
    epoch = hand.running()
    hand.release(UID, epoch)
    with unchanged(hand.engine):
        assert fenced(hand, epoch) is None


def test_nothing_is_written_after_the_task_was_cancelled_from_outside(
    fenced: Callable[[Hand, int], Row | None], hand: Hand, other: Hand
) -> None:
    epoch = hand.running()
    other.move(UID, "cancel")
    with unchanged(hand.engine):
        assert fenced(hand, epoch) is None


def test_nothing_is_written_after_a_rollback(
    fenced: Callable[[Hand, int], Row | None], hand: Hand, other: Hand
) -> None:
    epoch = hand.running()
    assert other.rollback(UID, 0)
    with unchanged(hand.engine):
        assert fenced(hand, epoch) is None


def test_nothing_is_written_after_the_task_was_deleted(
    fenced: Callable[[Hand, int], Row | None], hand: Hand, other: Hand
) -> None:
    epoch = hand.running()
    other.move(UID, "cancel")
    other.delete(UID)
    with unchanged(hand.engine):
        assert fenced(hand, epoch) is None


def test_a_task_that_was_never_there_is_refused(fenced: Callable[[Hand, int], Row | None], hand: Hand) -> None:
    hand.register()
    with unchanged(hand.engine):
        assert fenced(hand, 0) is None


@pytest.mark.req("R55")
def test_who_claims_sees_all_that_the_attempt_before_will_ever_have_written(engine: Engine, second: Engine) -> None:
    """The stale worker appends as fast as it can while the claim is under way, many times over."""
    stale, taker = Hand(engine, "w1"), Hand(second, "w2")
    stale.register()
    stale.create(UID)
    for _ in range(30):
        row = stale.claim(UID)
        assert row is not None
        epoch, begun = row[0], threading.Event()

        def append_until_refused(line: int, begun: threading.Event) -> None:
            position = 0
            while stale.append(UID, line, position, line=line):
                position += 1
                begun.set()

        thread = threading.Thread(target=append_until_refused, args=(epoch, begun))
        thread.start()
        begun.wait()
        while taker.claim(UID) is None:
            pass
        seen = taker.journal(UID, line=epoch)
        thread.join()
        assert taker.journal(UID, line=epoch) == seen
