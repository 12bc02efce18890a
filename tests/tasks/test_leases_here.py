"""Parts of one program that want the same task at once: one gets it."""

from __future__ import annotations

import asyncio

import pytest

from perdure import Perdure, durable, step
from perdure._tasks import read_holder, take_lease
from perdure.errors import LeaseHeld


@pytest.mark.req("R55")
async def test_of_many_that_want_the_lease_at_once_one_has_it(url: str) -> None:
    async with Perdure(url) as app:
        for number in range(10):
            task = await app.tasks.open(f"task-{number}", state={})
            store = task._store
            tries = [take_lease(store, task.id, task.uid, "", is_exclusive=True) for _ in range(5)]
            got = await asyncio.gather(*tries, return_exceptions=True)
            assert sum(not isinstance(one, BaseException) for one in got) == 1
            assert sum(isinstance(one, LeaseHeld) for one in got) == 4
            assert (await read_holder(store, task.uid)).epoch == 1


@pytest.mark.req("R55", "R112")
async def test_a_worker_and_a_run_in_one_program_do_not_get_in_each_others_way(url: str) -> None:
    @step(flush=True)
    async def one(number: int) -> int:
        return number

    @durable
    async def three() -> int:
        return await one(1) + await one(2) + await one(3)

    async with Perdure(url) as app, app.worker():
        for number in range(10):
            handle = await app.start(f"task-{number}", three)
            assert await app.run(f"task-{number}", three) == 6
            assert await handle.result() == 6
            record = await app.tasks.get(f"task-{number}")
            assert record is not None and len(record.attempts) == 1


@pytest.mark.req("R55")
async def test_who_stops_waiting_for_a_lease_does_not_keep_it(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("task", state={})
        store = task._store
        await store.presence.register()
        with store.committer.stopped():
            taking = asyncio.create_task(take_lease(store, task.id, task.uid, "", is_new=True))
            while task.uid not in store.presence.taking:
                await asyncio.sleep(0)
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
        await asyncio.to_thread(store.committer.flush)
        assert (await read_holder(store, task.uid)).is_free
        await task.checkpoint({"goes": "on"})
