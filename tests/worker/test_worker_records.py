"""`app.workers` and `perdure workers`: which processes use a store, and asking them to drain."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

import perdure
from perdure import Perdure, durable
from perdure._ground.clock import MovableClock
from perdure._store import Write
from perdure._worker import WorkerRecord
from perdure.errors import InvalidInput, NotFound, TimedOut
from tests.support.processes import Link, Nursery, say
from tests.support.waiting import look_again


@durable(name="records.waits")
async def waits() -> None:
    await asyncio.Event().wait()


async def work(link: Link, url: str) -> None:
    async with Perdure(url) as app, app.worker(concurrency=3, queues=("default", "mail")):
        say(link, app._store.presence.worker)
        await asyncio.Event().wait()


async def seen(app: Perdure, id: str) -> WorkerRecord:
    (found,) = [one for one in await app.workers.list() if one.id == id]
    return found


async def working(app: Perdure, id: str, *, leases: int = 0) -> WorkerRecord:
    """The worker, once it has said what it can do and holds so many tasks."""
    async with asyncio.timeout(120):
        while True:
            for one in await app.workers.list():
                if one.id == id and one.is_worker and one.leases >= leases:
                    return one
            await look_again()


@pytest.mark.req("R111")
async def test_a_worker_says_what_it_can_do_and_one_that_was_killed_is_dead(shared_url: str, children: Nursery) -> None:
    async with Perdure(shared_url) as app:
        await app.tasks.create("other", state={})
        child = children.start(work, shared_url)
        id = child.heard()
        await app.start("job", waits)
        found = await working(app, id, leases=1)
        assert (found.pid, found.state, found.concurrency) == (child.pid, "alive", 3)
        assert (found.queues, found.version, found.wish) == (["default", "mail"], perdure.__version__, "")
        assert "records.waits" in found.functions and found.is_worker and not found.is_remote
        command = [sys.executable, "-m", "perdure", "--store", shared_url, "workers"]
        table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert id in table and "1 of 3" in table and "alive" in table
        child.kill()
        assert (await seen(app, id)).state == "dead"
        told = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
        (item,) = [one for one in json.loads(told)["items"] if one["id"] == id]
        assert (item["state"], item["leases"], item["queues"]) == ("dead", 1, ["default", "mail"])


@pytest.mark.req("R111")
async def test_a_process_elsewhere_is_silent_after_a_lease_without_beats(
    url: str, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(clock.path))
    async with Perdure(url) as app:
        holder = await app.holders.register(host="laptop", pid=7, lease="10s")
        first = await seen(app, holder.worker)
        assert (first.state, first.beat_age, first.is_remote) == ("alive", None, True)
        for _ in range(2):
            clock.advance(seconds=4)
            assert (await seen(app, holder.worker)).state == "alive"
        clock.advance(seconds=4)
        found = await seen(app, holder.worker)
        assert found.state == "silent" and found.beat_age is not None and found.beat_age.total_seconds() == 12
        await app.holders.beat(holder.token)
        assert (await seen(app, holder.worker)).state == "alive"


@pytest.mark.req("R39")
async def test_workers_drain_by_their_ids(shared_url: str, children: Nursery) -> None:
    async with Perdure(shared_url) as app:
        await app.tasks.create("other", state={})
        child = children.start(work, shared_url)
        id = child.heard()
        await working(app, id)
        holder = await app.holders.register(host="laptop", pid=7)
        with pytest.raises(NotFound):
            await app.workers.drain([id, "nobody"])
        with pytest.raises(InvalidInput):
            await app.workers.drain([id, holder.worker])
        assert (await seen(app, id)).wish == ""
        (asked,) = await app.workers.drain([id], wait="60s")
        assert asked.id == id
        assert (await seen(app, id)).wish == "draining"
        child.stop()
        with pytest.raises(TimedOut):
            await app.workers.drain([id], wait="0s")


async def test_a_process_that_says_rubbish_of_itself_is_listed(url: str) -> None:
    async with Perdure(url) as app:
        holder = await app.holders.register(host="laptop", pid=7)
        for knows in ("{", "[]", '{"queues": 1, "functions": [1, []], "concurrency": "x", "perdure": null}'):
            params = {"worker": holder.worker, "knows": knows}
            await Write(app._store.committer, "announce", params, key="k")
            found = await seen(app, holder.worker)
            assert (found.queues, found.functions, found.concurrency, found.version) == ([], [], None, "")
