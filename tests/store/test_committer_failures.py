"""What the committer does when a batch fails: only the bad write fails, and a journal never has a hole."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Sequence

import pytest

from perdure._store import Again, Committer, Write
from perdure.errors import LeaseLost, PerdureError, StoreFull, StoreUnavailable, StoreUnreachable
from tests.store.kit import UIDS
from tests.store.watched import Attempt, Watched, in_thread, joined, until

FULL = StoreFull("no space", kept="all", do="make some")


def fail_at(*positions: int, error: Exception = FULL, uid: str = UIDS[0]) -> object:
    """Make a transaction fail that has one of these entries of a task in it."""

    def before(writes: Sequence[Write]) -> None:
        if any(write.params["uid"] == uid and write.params["position"] in positions for write in writes):
            raise error

    return before


def queue_all(committer: Committer, writes: Sequence[Write]) -> None:
    """Queue them so that they make one batch, and have it committed."""
    for write in writes:
        committer.enqueue(write)
    committer.flush()


# ── a batch that fails ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [FULL, OSError("disk"), ValueError("a value it cannot bind"), KeyError("param")])
def test_after_an_error_the_writes_run_one_by_one_in_the_same_order_and_only_the_bad_one_fails(
    attempt: Attempt, committer: Committer, watched: Watched, error: Exception
) -> None:
    watched.before = fail_at(2, error=error)
    writes = [attempt.entry(position, ordered=False) for position in range(5)]
    queue_all(committer, writes)
    assert watched.sizes() == [5, 1, 1, 1, 1, 1]
    assert [batch[0].params["position"] for batch in watched.batches[1:]] == [0, 1, 2, 3, 4]
    with pytest.raises(PerdureError):
        writes[2].outcome()
    assert [writes[n].outcome() for n in (0, 1, 3, 4)] == [(0,), (1,), (3,), (4,)]
    assert attempt.positions() == [0, 1, 3, 4]


def test_the_thread_outlives_an_error_nobody_thought_of(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    watched.before = fail_at(0, error=ZeroDivisionError())
    bad = committer.submit(attempt.entry(0, ordered=False))
    assert joined(in_thread(lambda: committer.flush()))
    assert bad.done
    thread = committer._thread
    good = committer.submit(attempt.entry(1))
    assert joined(in_thread(committer.flush))
    assert good.outcome() == (1,) and committer._thread is thread and thread is not None
    until(thread.is_alive)  # the flushes may have been quicker than its beginning


# ── no hole ──────────────────────────────────────────────────────────────────────────────────────


def test_a_failed_write_closes_its_attempt_and_nothing_after_it_is_written(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    watched.before = fail_at(2)
    writes = [attempt.entry(position) for position in range(5)]
    queue_all(committer, writes)
    assert attempt.positions() == [0, 1]
    for late in writes[2:]:
        with pytest.raises(StoreFull) as raised:
            late.outcome()
        assert raised.value is FULL
    watched.before = lambda writes: None
    with pytest.raises(StoreFull):
        committer.submit(attempt.entry(5))
    with pytest.raises(StoreFull):
        attempt.entry(2).block()
    with pytest.raises(StoreFull):
        attempt.fence.check()
    assert attempt.positions() == [0, 1]


def test_what_was_queued_before_the_failure_was_known_is_refused_too(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    watched.before = fail_at(0)
    watched.close_gate()
    committer.submit(attempt.entry(0))
    watched.wait_for_commit()
    late = [committer.submit(attempt.entry(position)) for position in range(1, 4)]
    watched.open_gate()
    committer.flush()
    assert watched.sizes() == [1], "they were not even sent"
    for write in late:
        with pytest.raises(StoreFull):
            write.outcome()


def test_the_failure_of_one_attempt_leaves_the_others(attempt: Attempt, committer: Committer, watched: Watched) -> None:
    other = Attempt(committer, watched.inner, UIDS[1], "beta")
    watched.before = fail_at(0)
    queue_all(committer, [attempt.entry(0), other.entry(0), attempt.entry(1), other.entry(1)])
    assert attempt.positions() == [] and other.positions() == [0, 1]
    assert other.fence.closed is None


def test_an_error_that_many_wait_for_is_as_short_as_one_that_one_waits_for(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    """A thousand tasks wait for one registration: each of them printed the ways of all before it."""
    watched.before = fail_at(0)
    write = attempt.entry(0)

    async def wait() -> Exception:
        with pytest.raises(StoreFull) as caught:
            await write
        return caught.value

    async def all_of_them() -> list[Exception]:
        return await asyncio.gather(*(wait() for _ in range(50)))

    for error in asyncio.run(all_of_them()):
        assert len(traceback.extract_tb(error.__traceback__)) < 5


def test_a_refused_write_closes_its_attempt_as_lost(attempt: Attempt, committer: Committer) -> None:
    attempt.hand.release(attempt.uid, attempt.epoch)
    assert attempt.entry(0).block() is None
    with pytest.raises(LeaseLost):
        attempt.entry(1).block()


def test_a_refused_write_that_nothing_depends_on_closes_nothing(attempt: Attempt) -> None:
    attempt.entry(0).block()
    assert attempt.entry(0, ordered=False).block() is None
    assert attempt.entry(1).block() == (1,)


# ── conflicts and lost connections ───────────────────────────────────────────────────────────────


def test_a_passing_conflict_is_tried_again_with_the_same_batch(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    left = [Again("deadlock"), Again("deadlock")]

    def before(writes: Sequence[Write]) -> None:
        if left:
            raise left.pop()

    watched.before = before
    queue_all(committer, [attempt.entry(position) for position in range(3)])
    assert watched.sizes() == [3, 3, 3]
    assert attempt.positions() == [0, 1, 2]


def test_a_conflict_that_does_not_pass_becomes_an_error(
    attempt: Attempt, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)

    def before(writes: Sequence[Write]) -> None:
        raise Again("deadlock")

    watched.before = before
    with pytest.raises(StoreUnavailable, match="refused a batch"):
        attempt.entry(0).block()
    assert attempt.positions() == []


def test_without_a_connection_every_write_of_the_batch_fails_and_none_is_tried_alone(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    """Whether they are in is not known, so trying them again could write them twice."""
    watched.before = fail_at(0, error=StoreUnreachable("gone", kept="not known", do="look"))
    writes = [attempt.entry(position) for position in range(3)]
    queue_all(committer, writes)
    assert watched.sizes() == [3]
    for write in writes:
        with pytest.raises(StoreUnreachable):
            write.outcome()
    with pytest.raises(StoreUnreachable):
        attempt.entry(3).block()


# ── Ctrl-C ───────────────────────────────────────────────────────────────────────────────────────


def test_ctrl_c_in_the_caller_that_commits_loses_nobodys_write(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    """The interrupt is the caller's; the writes of its batch are everybody's."""
    interrupts = [KeyboardInterrupt()]

    def before(writes: Sequence[Write]) -> None:
        if interrupts:
            raise interrupts.pop()

    watched.before = before
    other = Attempt(committer, watched.inner, UIDS[1], "beta")
    theirs, ours = [other.entry(position) for position in range(3)], attempt.entry(0)
    for write in theirs:
        committer.enqueue(write)
    ended: list[BaseException] = []

    def interrupted() -> None:
        try:
            ours.block()
        except KeyboardInterrupt as interrupt:
            ended.append(interrupt)

    assert joined(in_thread(interrupted)) and ended
    assert joined(in_thread(committer.flush))
    assert other.positions() == [0, 1, 2] and attempt.positions() == [0]
    assert [write.outcome() for write in theirs] == [(0,), (1,), (2,)]


def test_after_ctrl_c_somebody_else_commits_for_those_who_wait(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    interrupts = [KeyboardInterrupt()]

    def before(writes: Sequence[Write]) -> None:
        if interrupts:
            raise interrupts.pop()

    watched.before = before
    watched.close_gate()
    theirs = attempt.entry(0)
    committer.enqueue(theirs)
    ended: list[BaseException] = []

    def interrupted() -> None:
        try:
            attempt.entry(1).block()
        except KeyboardInterrupt as interrupt:
            ended.append(interrupt)

    first = threading.Thread(target=interrupted)
    first.start()
    watched.wait_for_commit()
    second = in_thread(theirs.block)
    until(lambda: theirs.waiters)
    watched.open_gate()
    assert joined(first) and joined(second) and ended
    committer.flush()
    assert attempt.positions() == [0, 1]
