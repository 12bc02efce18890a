"""One writer: taking the lease, keeping it, losing it, and what an attempt's end records."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure import Perdure
from perdure._model import Holder, Sighting
from perdure._tasks.attempts import after_error
from perdure._tasks.records import load
from perdure._tasks.task_row import current_row
from perdure.errors import InvalidInput, InvalidTransition, LeaseHeld, LeaseLost, StoreUnreachable
from perdure.types import Config


@pytest.mark.req("R12")
async def test_progress_is_kept_and_worked_out(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        await task.mark_progress("copy", done=15, total=42, cursor={"file": "m.py"})
        progress = (await task.record()).progress
        assert progress is not None
        assert (progress.done, progress.total, progress.remaining, progress.percent) == (15, 42, 27, 35.71)
        assert progress.cursor == {"file": "m.py"} and progress.operation == "copy"
        for bad in ({"percent": 101}, {"done": 5, "total": 4}, {"done": -1}):
            with pytest.raises(InvalidInput):
                await task.mark_progress("copy", **bad)
        assert (await task.record()).progress == progress


async def test_an_attempt_begins_with_the_newest_state_and_its_end_is_recorded(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"n": 0})
        stale = await app.tasks.open("job")
        async with task.attempt() as same:
            assert same is task
            await task.checkpoint({"n": 1})
        async with stale.attempt():
            assert stale.state == {"n": 1}
        record = await task.record()
        assert [(a.number, a.ended) for a in record.attempts] == [(1, "released"), (2, "released")]
        assert all(a.pid and a.host and a.user and a.ended_at for a in record.attempts)


async def test_a_record_shows_no_attempt_that_began_after_its_status_was_read(url):
    """Or a paused task would be shown with an attempt under way."""
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        async with task.attempt():
            pass
        row = await current_row(app._store, "job", task.uid)
        async with task.attempt():
            record, _ = await load(app._store, row)
        assert [attempt.ended for attempt in record.attempts] == ["released"]


async def test_two_parts_of_one_program_cannot_both_begin_an_attempt(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        other = await app.tasks.open("job")
        async with task.attempt():
            with pytest.raises(LeaseHeld, match="in this very process"):
                async with other.attempt():
                    pass
            await task.checkpoint({"still": "ours"})


async def test_a_notebook_that_opens_its_task_again_goes_on_with_the_lease_it_has(url):
    async with Perdure(url) as app:
        first = await app.tasks.open("job")
        await first.checkpoint({"n": 1})
        second = await app.tasks.open("job")
        await second.checkpoint({"n": 2})
        assert len((await first.record()).attempts) == 1
        await first.checkpoint({"n": 3})
        assert [c.data["n"] async for c in first.checkpoints()] == [1, 2, 3]


@pytest.mark.req("R10")
@pytest.mark.parametrize("choice, status", [("retry", "running"), ("pause", "paused"), ("fail", "failed")])
async def test_an_exception_does_what_the_tasks_config_says_and_goes_on_to_the_caller(url, choice, status):
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={}, config=Config(on_failure=choice))
        with pytest.raises(ZeroDivisionError):
            async with task.attempt():
                await task.checkpoint({"n": 1 / len([])})
        record = await task.record()
        assert record.status == status
        assert record.attempts[-1].ended.startswith({"retry": "error: Zero", "pause": "paused"}.get(choice, "failed"))
        if choice == "pause":
            assert record.pause is not None and "ZeroDivisionError" in record.pause.message


@pytest.mark.req("R10")
async def test_a_task_that_keeps_failing_fails_for_good_after_its_retries(url):
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={}, config=Config(max_retries=2))
        for _ in range(3):
            with pytest.raises(RuntimeError):
                async with task.attempt():
                    raise RuntimeError("again")
        record = await task.record()
        assert (record.status, record.error["message"], record.error["type"]) == ("failed", "again", "RuntimeError")


def test_retries_count_further_tries():
    assert [after_error(Config(max_retries=2), n) for n in (1, 2, 3)] == ["retry", "retry", "fail"]


async def test_nobody_works_on_a_paused_or_finished_task(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        await task.pause("wait", reason="checkpoint")
        with pytest.raises(InvalidTransition, match="resume"):
            await task.checkpoint({"n": 1})
        with pytest.raises(InvalidTransition):
            async with task.attempt():
                pass
        await task.resume()
        await task.complete()
        with pytest.raises(InvalidTransition):
            await task.checkpoint({"n": 1})
        assert [c.cause async for c in task.checkpoints()] == ["resume"]


@pytest.mark.req("R36")
async def test_a_cancelled_task_takes_no_more_writes_from_the_attempt_that_was_going_on(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"n": 0})
        await task.checkpoint({"n": 1})
        await (await app.tasks.open("job")).cancel()
        with pytest.raises((InvalidTransition, LeaseLost)):
            await task.checkpoint({"n": 2})
        record = await task.record()
        assert record.state == {"n": 1} and record.status == "cancelled" and record.attempts[-1].ended == "cancelled"


async def test_an_error_is_told_as_it_is_when_the_store_is_away_and_the_lease_is_not_kept(shared_url, monkeypatch):
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("job", state={})
        engine, away = app._store.engine, StoreUnreachable("away", kept="all", do="wait")

        def refuse(*_):
            raise away

        async def fail_while_it_is_away():
            async with task.attempt():
                patch.setattr(engine, "query", refuse)
                patch.setattr(engine, "commit", refuse)
                raise ValueError("mine")

        with monkeypatch.context() as patch, pytest.raises(ValueError, match="mine") as caught:
            await fail_while_it_is_away()
        assert "could not record the end of this attempt" in caught.value.__notes__[0]
        assert not app._store.presence.held
        async with task.attempt():
            await task.checkpoint({"n": 1})


# ── when is a lease over? ────────────────────────────────────────────────────────────────────────


def test_a_lease_is_over_only_after_a_whole_lease_of_seen_silence():
    lease = timedelta(seconds=5)
    seen = None
    for now in (100.0, 102.0, 104.0, 104.9):
        seen = Sighting.of(Holder(3, "w", beats=7), now, seen, lease)
        assert not seen.is_over(now, lease)
    assert seen is not None and seen.is_over(105.0, lease)
    for changed in (Holder(3, "w", beats=8), Holder(4, "w", beats=7), Holder(3, "v", beats=7)):
        assert not Sighting.of(changed, 105.0, seen, lease).is_over(109.9, lease)


def test_a_watcher_that_was_away_itself_has_not_seen_the_silence():
    lease = timedelta(seconds=5)
    before = Sighting.of(Holder(3, "w", beats=7), 100.0, None, lease)
    woken = Sighting.of(Holder(3, "w", beats=7), 100_000.0, before, lease)
    assert not woken.is_over(100_000.0, lease) and woken.is_over(100_002.5, lease)


@pytest.mark.req("R55")
async def test_a_silent_holder_is_replaced_after_a_whole_lease_and_its_late_write_is_refused(shared_url, clock):
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("job", state={"n": 0})
        await task.checkpoint({"n": 1})
        presence = app._store.presence
        stopped, mine = presence.held.pop(task.uid), presence.worker
        presence._rest()  # as SIGSTOP would: no more beats
        presence.worker, presence.is_registered = "somebody-else", False
        other = await app.tasks.open("job")
        with pytest.raises(LeaseHeld):
            await other.checkpoint({"n": 2})
        for _ in range(2):
            clock.advance(seconds=2)
            with pytest.raises(LeaseHeld):
                await other.checkpoint({"n": 2})
        clock.advance(seconds=1)
        await other.checkpoint({"n": 2})
        taken = presence.held[task.uid]
        presence.held[task.uid], presence.worker = stopped, mine
        with pytest.raises(LeaseLost, match="epoch was 1"):
            await task.checkpoint({"n": "late"})
        presence.held[task.uid], presence.worker = taken, "somebody-else"
        record = await task.record()
        assert record.state == {"n": 2}
        assert [a.ended for a in record.attempts] == ["silent for a whole lease", ""]
        assert "attempt taken over" in [event.kind for event in await app.tasks.events("job")]
