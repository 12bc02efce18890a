"""How soundly the committer's thread sleeps, and what wakes it."""

from __future__ import annotations

import asyncio

import pytest

from perdure._store import Committer, Write
from perdure._store import committer as committing
from tests.store.watched import FOREVER, Attempt, Watched, durable, in_thread, joined, until


def asleep(committer: Committer, how: int) -> None:
    """Return when the committer's thread has had work and sleeps again, so soundly."""
    first = committer.submit(Write(committer, "beat", {"worker": "nobody"}, key="nobody"))
    until(lambda: first.done and committer._sleep == how)


@pytest.mark.req("R11")
def test_a_write_that_nobody_waits_for_comes_to_disk_by_itself(attempt: Attempt, committer: Committer) -> None:
    asleep(committer, committing._DEEP)
    write = committer.submit(attempt.entry(0), urgent=False)
    until(lambda: write.done)
    assert attempt.positions() == [0]


def test_the_next_entry_of_a_journal_comes_to_disk_by_itself_in_the_place_it_was_given(
    attempt: Attempt, committer: Committer
) -> None:
    asleep(committer, committing._DEEP)
    write = attempt.entry(0)
    assert committer.submit_entry(write, dict(write.params), attempt.fence, urgent=False) == 1
    until(lambda: write.done)
    assert attempt.fence.newest is write and attempt.fence.position == 1


async def test_who_waits_for_a_write_that_is_queued_wakes_the_thread_from_its_doze(
    attempt: Attempt, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "GATHERING", 3600.0)
    asleep(committer, committing._LIGHT)
    write = committer.submit(attempt.entry(0), urgent=False)
    assert committer._sleep == committing._LIGHT
    assert await asyncio.wait_for(durable(write), FOREVER) == (0,)


async def test_who_waits_for_a_write_that_is_in_hand_makes_the_next_ones_no_more_urgent(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    watched.close_gate()
    write = committer.submit(attempt.entry(0))
    await asyncio.to_thread(watched.wait_for_commit)
    waiting = asyncio.ensure_future(durable(write))
    await asyncio.sleep(0)
    assert write.waiters and not committer._urgent
    watched.open_gate()
    assert await asyncio.wait_for(waiting, FOREVER) == (0,)


def test_what_is_urgent_wakes_the_thread_from_its_doze_and_takes_the_others_along(
    attempt: Attempt, committer: Committer, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "GATHERING", 3600.0)
    asleep(committer, committing._LIGHT)
    others = [committer.submit(attempt.entry(position), urgent=False) for position in range(2)]
    assert committer._sleep == committing._LIGHT and not any(write.done for write in others)
    last = committer.submit(attempt.entry(2))
    until(lambda: last.done)
    assert [len(batch) for batch in watched.batches][-1] == 3


def test_a_full_load_that_nobody_waits_for_is_committed_while_the_next_one_is_made(
    attempt: Attempt, committer: Committer, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "GATHERING", 3600.0)
    asleep(committer, committing._LIGHT)
    for position in range(committing.FULL_LOAD):
        assert committer._sleep == committing._LIGHT
        last = attempt.entry(position)
        committer.submit_entry(last, dict(last.params), attempt.fence, urgent=False)
    until(lambda: last.done)
    assert [len(batch) for batch in watched.batches][-1] == committing.FULL_LOAD


def test_a_chain_of_callers_who_commit_themselves_leaves_the_thread_in_its_doze(
    attempt: Attempt, committer: Committer, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep(committer, committing._DEEP)
    monkeypatch.setattr(committing, "LONGEST_DOZE", 3600.0)
    monkeypatch.setattr(committing, "GATHERING", 0.0)
    dozes: list[int] = []
    doze = committer._doze

    def watch(how: int, seconds: float) -> None:
        dozes.append(how)
        doze(how, seconds)

    monkeypatch.setattr(committer, "_doze", watch)
    assert joined(in_thread(attempt.entry(0).block))
    committer.submit(attempt.entry(1), urgent=False)  # wakes it, and others may join; so they may after it
    until(lambda: len(dozes) == 3)
    for position in range(2, 20, 2):
        committer.submit(attempt.entry(position), urgent=False)
        assert joined(in_thread(attempt.entry(position + 1).block))
    assert dozes == [committing._LIGHT] * 3
    assert [len(batch) for batch in watched.batches][-9:] == [2] * 9


def test_what_the_last_of_such_a_chain_leaves_comes_to_disk_by_itself(attempt: Attempt, committer: Committer) -> None:
    asleep(committer, committing._DEEP)
    for position in range(0, 20, 2):
        last = committer.submit(attempt.entry(position), urgent=False)
        attempt.entry(position + 1).block()
    last = committer.submit(attempt.entry(20), urgent=False)
    until(lambda: last.done)
    asleep(committer, committing._DEEP)
