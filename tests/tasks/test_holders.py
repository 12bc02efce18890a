"""Leases of processes elsewhere: any server carries their writes, and only their own silence ends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure._store import Author, WorkerRow, acting, store
from perdure._tasks import RemoteHolder, read_holder
from perdure._worker.losses.reaper import SILENT, Reaper
from perdure.errors import InvalidInput, InvalidTransition, LeaseHeld, LeaseLost, NotFound
from tests.support.processes import Link, Nursery, say


@asynccontextmanager
async def servers(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Perdure, Perdure]]:
    """Two servers on one store, each with a presence and an engine of its own."""
    first = Perdure(url)
    with monkeypatch.context() as patch:
        patch.setattr(store, "_shared", {})
        second = Perdure(url)
    assert first._store.presence is not second._store.presence
    try:
        yield first, second
    finally:
        await second.close()
        await first.close()


async def registered(app: Perdure, host: str = "laptop", **more: Any) -> RemoteHolder:
    return await app.holders.register(host=host, pid=4711, boot_id="b-1", **more)


@pytest.mark.req("R55", "R57")
async def test_a_holder_writes_through_any_server(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with servers(url, monkeypatch) as (one, two):
        await one.tasks.create("job", state={"n": 0}, agent="scout")
        with acting(Author("ada")):
            holder = await registered(one)
        fence = await one.holders.hold_for(holder.token, "job")
        through_two = await two.holders.task("job", fence)
        await through_two.checkpoint({"n": 1})
        through_one = await one.holders.task("job", fence)
        assert through_one.state == {"n": 1}
        await through_one.append("list", "x")
        await (await two.holders.task("job", fence)).mark_progress("copy", percent=40)
        await two.holders.beat(holder.token)
        await (await one.holders.task("job", fence)).complete({"ok": True})
        record = await two.tasks.get("job")
        assert record is not None and (record.status, record.result) == ("completed", {"ok": True})
        assert record.state == {"n": 1, "list": ["x"]}
        assert record.progress is not None and record.progress.percent == 40
        (attempt,) = record.attempts
        assert (attempt.host, attempt.pid, attempt.user) == ("laptop", 4711, "ada")
        assert attempt.ended == "completed"


@pytest.mark.req("R55")
async def test_a_second_holder_is_refused_until_the_first_is_silent_for_its_lease(
    url: str, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with servers(url, monkeypatch) as (one, two):
        await one.tasks.create("job", state={})
        slow, quick = await registered(one, lease="10s"), await registered(two, host="desk")
        old = await one.holders.hold_for(slow.token, "job")
        for _ in range(4):  # it beats, through either server
            clock.advance(seconds=4)
            await (one if _ % 2 else two).holders.beat(slow.token)
            with pytest.raises(LeaseHeld):
                await two.holders.hold_for(quick.token, "job")
        for _ in range(2):
            clock.advance(seconds=4)
            with pytest.raises(LeaseHeld):
                await two.holders.hold_for(quick.token, "job")
        clock.advance(seconds=4)
        new = await two.holders.hold_for(quick.token, "job")
        await one.holders.beat(slow.token)  # it was only slow
        late = await one.holders.task("job", old)
        for write in (
            late.checkpoint({"late": 1}),
            late.append("late", 1),
            late.mark_progress("late", percent=1),
            late.pause("late"),
            late.complete("late"),
            late.fail("late"),
        ):
            with pytest.raises(LeaseLost):
                await write
        await (await one.holders.task("job", new)).complete("in time")
        record = await one.tasks.get("job")
        assert record is not None and (record.state, record.result) == ({}, "in time")
        assert [one.ended for one in record.attempts] == ["silent for a whole lease", "completed"]


@pytest.mark.req("R55", "R56")
async def test_a_task_is_taken_over_from_a_living_holder_on_request(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={})
        first, second = await registered(app), await registered(app, host="desk", user="bob")
        old = await app.holders.hold_for(first.token, "job")
        await app.holders.hold_for(second.token, "job", take_over=True)
        with pytest.raises(LeaseLost):
            await (await app.holders.task("job", old)).checkpoint({"late": True})
        record = await task.record()
        assert record.attempts[0].ended == "taken over by bob on desk"
        async with (await app.tasks.handle("job")).attempt(take_over=True) as here:
            with pytest.raises(LeaseHeld):
                await app.holders.hold_for(first.token, "job")
            await here.checkpoint({"mine": True})


@pytest.mark.req("R55")
async def test_asking_again_gives_the_same_fence_and_no_second_attempt(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={})
        holder = await registered(app)
        fence = await app.holders.hold_for(holder.token, "job")
        assert await app.holders.hold_for(holder.token, "job") == fence
        assert len((await task.record()).attempts) == 1


@pytest.mark.req("R55")
async def test_a_pause_and_a_failure_end_the_attempt(url: str) -> None:
    async with Perdure(url) as app:
        holder = await registered(app)
        for id, verb, status in (("a", "pause", "paused"), ("b", "fail", "failed")):
            await app.tasks.create(id, state={})
            fence = await app.holders.hold_for(holder.token, id)
            held = await app.holders.task(id, fence)
            await getattr(held, verb)("because")
            record = await app.tasks.get(id)
            assert record is not None and record.status == status and record.attempts[0].ended == status
            with pytest.raises(InvalidTransition if verb == "fail" else LeaseLost):
                await held.checkpoint({})
            with pytest.raises(InvalidTransition):
                await app.holders.hold_for(holder.token, id)


@pytest.mark.req("R55")
async def test_a_holder_that_leaves_gives_back_what_it_holds_and_is_gone(url: str) -> None:
    async with Perdure(url) as app:
        holder = await registered(app)
        for id in ("a", "b"):
            await app.tasks.create(id, state={})
        fences = [await app.holders.hold_for(holder.token, id) for id in ("a", "b")]
        assert await app.holders.release("a", fences[0]) is True
        assert await app.holders.release("a", fences[0]) is False
        await app.holders.leave(holder.token)
        await app.holders.leave(holder.token)
        for id in ("a", "b"):
            task = await app.tasks.handle(id)
            assert (await read_holder(app._store, task.uid)).is_free
        assert (await (await app.tasks.handle("b")).record()).attempts[0].ended == "its holder left"
        with pytest.raises(NotFound, match="register it again"):
            await app.holders.beat(holder.token)
        with pytest.raises(NotFound):
            await app.holders.hold_for(holder.token, "a")
        assert holder.worker not in {row.id for row in await app._store.rows(WorkerRow, "read_workers")}


@pytest.mark.req("R55", "R111")
async def test_a_worker_takes_a_silent_holder_for_lost_and_never_for_dead(url: str, clock: MovableClock) -> None:
    """Its pid says nothing: the process with that number here is another one, or none."""
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={})
        holder = await app.holders.register(host=app._store.presence.process.host, pid=1, boot_id="another")
        await app.holders.hold_for(holder.token, "job")
        await app._store.presence.register()
        reaper = Reaper(app.tasks, lambda: None)
        for _ in range(6):  # each look counts half a lease of silence at most, and only while we ourselves beat
            await reaper.round()
            assert not (await read_holder(app._store, task.uid)).is_free
            clock.advance(seconds=2)
        for _ in range(40):
            app._store.engine.beat(app._store.presence.worker) or await app._store.presence._write("beat")
            clock.advance(seconds=2)
            await reaper.round()
        record = await task.record()
        assert record.attempts[0].ended == SILENT
        assert await app.holders.hold_for((await registered(app)).token, "job")


@pytest.mark.req("R55")
async def test_a_holder_that_went_away_is_forgotten_after_an_hour(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        await app.tasks.create("job", state={})
        gone, there, busy = [await registered(app, host=host) for host in ("a", "b", "c")]
        await app.holders.hold_for(busy.token, "job")
        for _ in range(2):
            await registered(app)
            await app.holders.beat(there.token)
            clock.advance(minutes=61)
        await registered(app)
        left = {row.id for row in await app._store.rows(WorkerRow, "read_workers")}
        assert gone.worker not in left and {there.worker, busy.worker} <= left


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": ""},
        {"host": "a\0b"},
        {"host": "x" * 256},
        {"pid": -1},
        {"pid": 1 << 31},
        {"pid": "1"},
        {"pid": True},
        {"boot_id": "\n"},
        {"lease": "10ms"},
        {"lease": "2h"},
        {"user": "\ud800"},
    ],
)
async def test_what_cannot_be_kept_of_a_holder_is_refused(quick_url: str, wrong: dict[str, Any]) -> None:
    async with Perdure(quick_url) as app:
        with pytest.raises(InvalidInput):
            await app.holders.register(**{"host": "laptop", "pid": 1, **wrong})


async def test_a_token_or_a_fence_that_is_none_is_refused_and_never_shown(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await app.tasks.create("job", state={})
        holder = await registered(app)
        assert holder.token not in repr(holder)
        fence = await app.holders.hold_for(holder.token, "job")
        for wrong in ("", "x", holder.token + "x", fence, holder.worker, None):
            with pytest.raises(InvalidInput) as refused:
                await app.holders.beat(wrong)  # type: ignore[arg-type]
            assert holder.token not in str(refused.value)
        for wrong in ("", "1", f"0.{holder.token}", f"-1.{holder.token}", f"1.{holder.worker}", None):
            with pytest.raises(InvalidInput) as refused:
                await app.holders.task("job", wrong)  # type: ignore[arg-type]
            assert holder.token not in str(refused.value)
        with pytest.raises(LeaseLost):
            await (await app.holders.task("job", f"9.{holder.token}")).checkpoint({})


async def serve_a_holder(link: Link, url: str) -> None:
    app = Perdure(url)
    holder = await app.holders.register(host="laptop", pid=7)
    say(link, (holder.token, await app.holders.hold_for(holder.token, "job")))
    await asyncio.Event().wait()


@pytest.mark.req("R55", "R111")
async def test_killing_the_server_that_registered_a_holder_takes_nothing_from_it(
    shared_url: str, children: Nursery
) -> None:
    async with Perdure(shared_url) as app:
        task = await app.tasks.create("job", state={})
        server = children.start(serve_a_holder, shared_url)
        token, fence = server.heard()
        server.kill()
        await (await app.holders.task("job", fence)).checkpoint({"still": "mine"})
        await app.holders.beat(token)
        assert await app.holders.hold_for(token, "job") == fence
        assert (await task.record()).state == {"still": "mine"}
