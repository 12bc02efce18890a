"""One committer per process: one queue, one baton, group commit. Each test is a sentence of DESIGN §5."""

from __future__ import annotations

import asyncio
import threading

import pytest

from perdure._store import Committer, Write
from perdure.errors import LeaseLost, StoreClosed
from tests.store.kit import IDS, UIDS
from tests.store.watched import FOREVER, Attempt, Watched, durable, in_thread, joined, until

# ── order and waiting ────────────────────────────────────────────────────────────────────────────


def test_the_writes_of_a_task_are_committed_in_the_order_they_were_given(
    committer: Committer, watched: Watched
) -> None:
    attempts = [Attempt(committer, watched.inner, uid, id) for uid, id in zip(UIDS, IDS, strict=False)]

    def write_many(attempt: Attempt) -> None:
        for position in range(200):
            committer.submit(attempt.entry(position), urgent=position % 7 == 0)

    threads = [in_thread(lambda attempt=attempt: write_many(attempt)) for attempt in attempts]
    assert all(joined(thread) for thread in threads)
    committer.flush()
    sent = [write for batch in watched.batches for write in batch]
    for attempt in attempts:
        assert [w.params["position"] for w in sent if w.params["uid"] == attempt.uid] == list(range(200))
        assert attempt.positions() == list(range(200))


def test_an_attempt_that_was_closed_gets_no_place_for_another_entry(attempt: Attempt, committer: Committer) -> None:
    attempt.fence.close(LeaseLost("alpha", "another attempt has it"))
    write = attempt.entry(0)
    with pytest.raises(LeaseLost):
        committer.submit_entry(write, dict(write.params), attempt.fence, urgent=False)
    assert attempt.fence.position == 0 and attempt.fence.newest is None and not write.queued


@pytest.mark.req("R11")
def test_a_barrier_returns_when_its_write_is_durable(attempt: Attempt, watched: Watched) -> None:
    watched.close_gate()
    seen: list[list[int]] = []

    def write_and_look() -> None:
        attempt.entry(0).block()
        seen.append(attempt.positions())

    thread = in_thread(write_and_look)
    watched.wait_for_commit()
    assert thread.is_alive() and attempt.positions() == []
    watched.open_gate()
    assert joined(thread) and seen == [[0]]


@pytest.mark.req("R11")
async def test_awaiting_a_write_returns_when_it_is_durable(attempt: Attempt, watched: Watched) -> None:
    watched.close_gate()
    waiting = asyncio.ensure_future(durable(attempt.entry(0)))
    await asyncio.to_thread(watched.wait_for_commit)
    assert not waiting.done() and attempt.positions() == []
    watched.open_gate()
    assert await waiting == (0,)
    assert attempt.positions() == [0]


def test_a_pipelined_write_is_not_waited_for(attempt: Attempt, committer: Committer, watched: Watched) -> None:
    watched.close_gate()
    write = committer.submit(attempt.entry(0), urgent=False)
    assert not write.done
    watched.open_gate()
    committer.flush()
    assert write.outcome() == (0,)


def test_pipelined_writes_are_in_when_a_later_barrier_returns(attempt: Attempt, committer: Committer) -> None:
    for position in range(10):
        committer.submit(attempt.entry(position), urgent=False)
    attempt.entry(10).block()
    assert attempt.positions() == list(range(11))


async def test_pipelined_writes_are_in_when_a_later_awaited_one_is(attempt: Attempt, committer: Committer) -> None:
    for position in range(10):
        committer.submit(attempt.entry(position), urgent=False)
    await attempt.entry(10)
    assert attempt.positions() == list(range(11))


def test_pipelined_writes_need_nobody_to_wait_for_them(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    committer.submit(attempt.entry(0), urgent=False)
    watched.wait_for_commit()


# ── the baton ────────────────────────────────────────────────────────────────────────────────────


def test_the_main_thread_where_a_handler_may_raise_never_commits(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    attempt.entry(0).block()
    committer.submit(attempt.entry(1))
    committer.flush()
    assert watched.threads and threading.current_thread() not in watched.threads


def test_where_no_thread_can_be_started_the_main_thread_commits_itself(
    attempt: Attempt, committer: Committer, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a program's last function calls us while the interpreter is taken down."""

    def cannot(*_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr("perdure._store.committer.start_apart", cannot)
    attempt.entry(0).block()
    assert watched.threads == [threading.current_thread()] and attempt.positions() == [0]


def test_a_blocking_caller_that_finds_the_baton_free_commits_itself(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    caller = in_thread(lambda: [attempt.entry(position).block() for position in range(5)])
    assert joined(caller)
    assert watched.threads == [caller] * 5
    assert committer._thread is None, "no second thread was needed"


async def test_an_event_loop_thread_never_commits(attempt: Attempt, committer: Committer, watched: Watched) -> None:
    for position in range(5):
        await attempt.entry(position)
    await asyncio.gather(*[durable(attempt.entry(position)) for position in range(5, 20)])
    assert {thread.name for thread in watched.threads} == {"perdure-committer"}
    assert threading.current_thread() not in watched.threads


def test_while_one_commits_the_others_queue_up_and_go_as_one_batch(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    watched.close_gate()
    first = in_thread(attempt.entry(0).block)
    watched.wait_for_commit()
    for position in range(1, 51):
        committer.submit(attempt.entry(position))
    watched.open_gate()
    committer.flush()
    assert joined(first)
    assert watched.sizes() == [1, 50]


def test_a_caller_that_finds_the_baton_taken_is_committed_by_another(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    watched.close_gate()
    first = in_thread(attempt.entry(0).block)
    watched.wait_for_commit()
    second = attempt.entry(1)
    waiting = in_thread(second.block)
    until(lambda: second.waiters)
    watched.open_gate()
    assert joined(first) and joined(waiting)
    assert [thread.name for thread in watched.threads[1:]] == ["perdure-committer"]


def test_one_write_may_have_several_waiters(attempt: Attempt, committer: Committer, watched: Watched) -> None:
    watched.close_gate()
    committer.submit(write := attempt.entry(0))
    watched.wait_for_commit()
    threads = [in_thread(write.block), in_thread(lambda: asyncio.run(durable(write))), in_thread(committer.flush)]
    until(lambda: len(write.waiters) >= 2)
    watched.open_gate()
    assert all(joined(thread) for thread in threads)


# ── how much at once ─────────────────────────────────────────────────────────────────────────────


def sizes_of(attempt: Attempt, watched: Watched, sizes: list[int]) -> list[int]:
    """How writes of these sizes are divided into batches when they are queued all at once."""
    watched.close_gate()
    first = in_thread(attempt.entry(0).block)
    watched.wait_for_commit()
    for position, size in enumerate(sizes, 1):
        attempt.committer.submit(attempt.entry(position, size=size))
    watched.open_gate()
    attempt.committer.flush()
    assert joined(first)
    assert attempt.positions() == list(range(len(sizes) + 1))
    return watched.sizes()[1:]


def test_a_batch_holds_at_most_four_megabytes(attempt: Attempt, watched: Watched) -> None:
    assert sizes_of(attempt, watched, [1_500_000] * 5) == [2, 2, 1]


def test_a_batch_may_be_just_four_megabytes(attempt: Attempt, watched: Watched) -> None:
    assert sizes_of(attempt, watched, [2_000_000, 2_000_000, 1]) == [2, 1]


def test_a_write_larger_than_a_batch_goes_alone(attempt: Attempt, watched: Watched) -> None:
    assert sizes_of(attempt, watched, [10, 9_000_000, 10, 10]) == [1, 1, 2]


def test_a_batch_holds_at_most_so_many_writes(attempt: Attempt, watched: Watched) -> None:
    assert sizes_of(attempt, watched, [10] * 4_500) == [2_000, 2_000, 500]


def test_what_an_engine_did_not_take_is_sent_again_in_order(attempt: Attempt, watched: Watched) -> None:
    """An engine may end a transaction early, so that others do not wait long."""
    watched.most = 3
    assert sizes_of(attempt, watched, [10] * 8) == [8, 5, 2]


def test_what_was_not_taken_goes_before_what_came_meanwhile(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    watched.most = 2
    watched.close_gate()
    for position in range(4):
        committer.enqueue(attempt.entry(position))
    first = in_thread(committer.flush)
    watched.wait_for_commit()
    for position in range(4, 6):
        committer.enqueue(attempt.entry(position))
    watched.open_gate()
    assert joined(first) and joined(in_thread(committer.flush))
    sent = [[write.params["position"] for write in batch] for batch in watched.batches]
    assert sent == [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5]]


def test_who_waits_for_a_write_the_engine_did_not_take_is_not_forgotten(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    """A blocking caller has the batch, gets its own write done, and leaves the rest behind."""
    watched.most = 1
    watched.close_gate()
    ours, theirs = attempt.entry(0), attempt.entry(1)
    committer.enqueue(ours)
    committer.enqueue(theirs)
    first = in_thread(ours.block)
    watched.wait_for_commit()
    second = in_thread(theirs.block)
    # The committer's thread has looked, found the queue empty, and gone to sleep.
    until(lambda: theirs.waiters and committer._sleep == 2)
    watched.open_gate()
    assert joined(first) and joined(second)
    assert attempt.positions() == [0, 1]


def test_the_thread_is_rung_for_after_what_was_not_taken_is_back_in_the_queue(
    attempt: Attempt, committer: Committer, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rung before, it would find an empty queue and sleep on."""
    watched.most = 2
    ring, queued = committer._ring, []

    def watched_ring() -> None:
        queued.append([write.params["position"] for write in committer._queue])
        ring()

    monkeypatch.setattr(committer, "_ring", watched_ring)
    for position in range(5):
        committer.enqueue(attempt.entry(position))
    first = committer._queue[0]
    assert joined(in_thread(first.block))
    assert queued[0] == [2, 3, 4]
    assert joined(in_thread(committer.flush)) and attempt.positions() == [0, 1, 2, 3, 4]


def test_a_write_of_a_closed_attempt_is_refused_only_after_all_before_it_are_done(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    """Who flushes waits for the last write: refused early, it would let the flush return too soon."""
    other = Attempt(committer, watched.inner, UIDS[1], "other")
    watched.most, second_may_go = 1, threading.Event()
    watched.before = lambda writes: assert_true(len(watched.batches) < 2 or second_may_go.wait(FOREVER))
    watched.close_gate()
    writes = [attempt.entry(0), attempt.entry(1), other.entry(0)]
    for write in writes:
        committer.enqueue(write)
    other.fence.close(LeaseLost("other", "it was taken over"))
    first = in_thread(writes[0].block)
    watched.wait_for_commit()
    flushing = in_thread(committer.flush)
    until(lambda: writes[2].waiters)
    watched.open_gate()
    watched.wait_for_commit()  # of the second batch: what was not taken is back, and the first write is settled
    assert joined(first) and not writes[2].done and flushing.is_alive()
    second_may_go.set()
    assert joined(flushing) and attempt.positions() == [0, 1]
    with pytest.raises(LeaseLost):
        writes[2].outcome()


def assert_true(is_so: object) -> None:
    assert is_so


def test_a_flush_waits_for_the_rest_of_a_batch_that_was_cut_in_two(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    watched.most = 1
    watched.close_gate()
    writes = [attempt.entry(position) for position in range(6)]
    for write in writes:
        committer.enqueue(write)
    first = in_thread(writes[0].block)
    watched.wait_for_commit()
    seen: list[list[int]] = []
    flushing = in_thread(lambda: (committer.flush(), seen.append(attempt.positions())))
    until(lambda: writes[-1].waiters or not flushing.is_alive())
    watched.open_gate()
    assert joined(first) and joined(flushing)
    assert seen == [[0, 1, 2, 3, 4, 5]]


# ── waiters that go away, and many of them ───────────────────────────────────────────────────────


async def test_a_cancelled_waiter_does_not_lose_the_write(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    watched.close_gate()
    write = attempt.entry(0)
    waiting = asyncio.ensure_future(durable(write))
    await asyncio.to_thread(watched.wait_for_commit)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    watched.open_gate()
    await asyncio.to_thread(committer.flush)
    assert write.outcome() == (0,) and attempt.positions() == [0]


def test_who_waits_beside_a_task_that_ends_the_loop_goes_on_when_the_loop_does(
    attempt: Attempt, committer: Committer
) -> None:
    """All that wait for writes of one batch are woken by one callback, and Ctrl-C comes out of the first of them."""

    async def interrupted(write: Write) -> None:
        await write
        raise KeyboardInterrupt

    loop = asyncio.new_event_loop()
    tasks = [loop.create_task(interrupted(attempt.entry(0))), loop.create_task(durable(attempt.entry(1)))]
    with committer.stopped():
        loop.run_until_complete(asyncio.sleep(0))
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(tasks[1])
    assert loop.run_until_complete(asyncio.wait_for(tasks[1], 120)) == (1,)
    with pytest.raises(KeyboardInterrupt):
        tasks[0].result()
    loop.close()


def test_a_loop_that_is_gone_does_not_disturb_the_others(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    watched.close_gate()
    write = attempt.entry(0)

    async def give_up() -> None:
        waiting = asyncio.ensure_future(durable(write))
        await asyncio.to_thread(watched.wait_for_commit)
        waiting.cancel()

    asyncio.run(give_up())
    other = committer.submit(attempt.entry(1))
    watched.open_gate()
    assert other.block() == (1,)
    assert attempt.positions() == [0, 1]


def test_many_loops_and_threads_at_once(committer: Committer, watched: Watched) -> None:
    writers = 6
    attempts = [Attempt(committer, watched.inner, f"t{number}", f"task {number}") for number in range(writers)]
    answers: dict[int, list[object]] = {number: [] for number in range(writers)}
    start = threading.Barrier(writers)

    def blocking(number: int) -> None:
        start.wait()
        for position in range(50):
            answers[number].append(attempts[number].entry(position).block())

    async def on_loop(number: int) -> None:
        for position in range(0, 50, 5):
            writes = [attempts[number].entry(position + more) for more in range(5)]
            answers[number] += await asyncio.gather(*[durable(write) for write in writes])

    def looping(number: int) -> None:
        start.wait()
        asyncio.run(on_loop(number))

    threads = [
        in_thread(lambda number=number: (looping if number % 2 else blocking)(number)) for number in range(writers)
    ]
    assert all(joined(thread) for thread in threads)
    for number, attempt in enumerate(attempts):
        assert answers[number] == [(position,) for position in range(50)]
        assert attempt.positions() == list(range(50))
    assert committer.writes == writers * 50


# ── closing ──────────────────────────────────────────────────────────────────────────────────────


def test_close_commits_what_is_queued_and_takes_no_more(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    for position in range(20):
        committer.enqueue(attempt.entry(position))
    committer.close()
    assert attempt.positions() == list(range(20))
    late = attempt.entry(20)
    with pytest.raises(StoreClosed):
        committer.submit(late)
    with pytest.raises(StoreClosed):
        late.block()
    committer.close()


def test_close_ends_the_thread(attempt: Attempt, committer: Committer) -> None:
    committer.submit(attempt.entry(0))
    thread = committer._thread
    assert thread is not None
    committer.close()
    assert not thread.is_alive() and attempt.positions() == [0]
