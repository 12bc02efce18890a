"""Through a server, the parts of an app beside `app.tasks` give the same records and errors as in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from perdure import Perdure, durable, effect, errors, step, sync
from perdure._ground.encoding.json_values import plain
from perdure.pause import approval
from perdure.server import make_app
from tests.support.asking import ALL, Known
from tests.support.live_server import listening
from tests.support.waiting import look_again


@step
async def fetch(page: int) -> str:
    return f"page {page}"


@step
async def shout() -> None:
    raise ValueError("a" * 100_000)


@effect(undo=lambda result, amount: None)
async def charge(amount: int) -> int:
    return amount


@effect
async def unsure(amount: int) -> int:
    raise ConnectionError("no answer")


@durable
async def errand(pages: int) -> int:
    for page in range(pages):
        await fetch(page)
    with contextlib.suppress(ValueError):
        await shout()
    await charge(5)
    await approval("ship it?")
    return pages


@durable
async def doubtful() -> int:
    return await unsure(3)


@durable
async def adding(a: int, b: int = 1) -> int:
    return a + b


@pytest.fixture
def address(shared_url) -> Iterator[str]:
    server = make_app(shared_url)
    server._guard, server._identity = None, Known(ALL)
    with listening(server) as address:
        yield address


async def test_what_a_task_has_done_is_the_same_from_here_and_through_a_server(address, shared_url):
    async with Perdure(shared_url) as here, Perdure(address) as there:
        await here.run_until_paused("errand", errand, 3)
        assert await there.journal.outline("errand") == await here.journal.outline("errand")
        for how in ({}, {"limit": 2}, {"kind": "effect"}, {"state": "raised"}, {"text": "page"}):
            mine, theirs = await here.journal.page("errand", **how), await there.journal.page("errand", **how)
            assert (plain(theirs.items), theirs.cursor) == (plain(mine.items), mine.cursor)
        assert plain(await there.journal.entry("errand", 1, 1)) == plain(await here.journal.entry("errand", 1, 1))
        assert await there.journal.lines("errand") == await here.journal.lines("errand")
        assert await there.effects.of("errand") == await here.effects.of("errand")
        assert await there.tasks.family("errand") == await here.tasks.family("errand")
        task = await there.tasks.handle("errand")
        assert await task.cancel(dry_run=True) == await (await here.tasks.handle("errand")).cancel(dry_run=True)
        await task.approve(by="", comment="fine")
        with pytest.raises(errors.NotFound):
            await there.journal.outline("nothing")
        with pytest.raises(errors.NotFound):
            await there.journal.entry("errand", 1, 999)
        with pytest.raises(errors.InvalidInput):
            await there.journal.page("errand", limit=0)


async def test_checkpoints_are_the_same_from_here_and_through_a_server(address, shared_url):
    async with Perdure(shared_url) as here, Perdure(address) as there:
        task = await there.tasks.create("t", state={"files": [1, 2]})
        async with task.attempt():
            for number in range(3):
                await task.checkpoint({"files": [number, 1, 2]}, label=f"c{number}")
        assert (await there.checkpoints.page("t")).items == (await here.checkpoints.page("t")).items
        assert await there.checkpoints.get("t", 2) == await here.checkpoints.get("t", 2)
        assert await there.checkpoints.get("t", 2, part="state", path=["files", 0]) == 1
        mine = await here.checkpoints.diff("t", 1)
        assert await there.checkpoints.diff("t", 1) == mine
        assert await task.diff("1", "3") == mine.changes
        assert [one.label for one in [one async for one in task.checkpoints()]] == ["c0", "c1", "c2"]
        await task.pin("1")
        assert (await here.checkpoints.page("t")).items[0].pinned
        assert await task.invalidate_if(lambda one: one.label == "c2") == [f"{task.uid}.3"]
        assert task.state == {"files": [1, 1, 2]}
        with pytest.raises(errors.NotFound):
            await there.checkpoints.get("t", 77)
        with pytest.raises(errors.NotFound):
            await there.checkpoints.get("t", 2, part="state", path=["nothing"])


async def test_functions_start_by_name_through_a_server(address, shared_url):
    async with Perdure(shared_url) as here, Perdure(address) as there, here.worker():
        while not await there.functions():
            await look_again()
        assert await there.functions() == await here.functions()
        task = await there.start_by_name("sum", "adding", arguments={"a": 2, "b": 3}, timeout="1m")
        assert task.created
        assert (await there.tasks.wait_for("sum", timeout="120s")).result == 5
        assert not (await there.start_by_name("sum", "adding", arguments={"a": 2, "b": 3})).created
        with pytest.raises(errors.Conflict):
            await there.start_by_name("sum", "adding", arguments={"a": 9})
        with pytest.raises(errors.InvalidInput):
            await there.start_by_name("sum2", "adding", arguments={"a": "x"})
        with pytest.raises(errors.NotFound):
            await there.start_by_name("sum3", "unheard-of")


async def test_schedules_triggers_and_events_through_a_server(address, shared_url):
    async with Perdure(shared_url) as here, Perdure(address) as there:
        made = await there.schedules.add("s", "adding", {"a": 1}, version=1, every="1h")
        assert [made] == await here.schedules.list() == await there.schedules.list()
        changed = await there.schedules.add("s", "adding", {"a": 2}, version=1, cron="0 9 * * *")
        assert (changed.cron, changed.version != made.version) == ("0 9 * * *", True)
        with pytest.raises(errors.StaleVersion):
            await there.schedules.add("s", "adding", {"a": 2}, version=1, every="1h", if_version=made.version)
        assert (await there.schedules.pause("s")).is_paused
        assert not (await there.schedules.resume("s")).is_paused
        task = await there.schedules.run_now("s", key="once")
        assert await there.schedules.run_now("s", key="once") == task
        await there.schedules.remove("s")
        assert await there.schedules.get("s") is None
        with pytest.raises(errors.NotFound):
            await there.schedules.remove("s")
        await there.triggers.add("t", "ping", task="order-{n}", signal="paid", rate=(2, "1m"))
        assert await there.triggers.list() == await here.triggers.list()
        assert (await there.events.send("ping", {"n": 1}, id="e1")).is_new
        assert not (await there.events.send("ping", {"n": 1}, id="e1")).is_new
        assert await there.events.list() == await here.events.list()
        with pytest.raises(errors.NotFound):
            await there.events.send("pong", {})


async def test_workers_and_kill_switches_through_a_server(address, shared_url):
    async with Perdure(shared_url) as here, Perdure(address) as there, here.worker():
        while not await there.functions():
            await look_again()
        (worker,) = [one for one in await there.workers.list() if one.is_worker]
        assert (worker.state, worker.queues) == ("alive", ["default"])
        assert [one.name for one in await there.workers.queues()] == ["default"]
        await there.kill_switch.on("t", why="costs")
        assert [(one.id, one.why) for one in await there.kill_switch.list()] == [("t", "costs")]
        with pytest.raises(errors.KillSwitchOn):
            await there.kill_switch.check("t")
        await there.kill_switch.off("t")
        await there.kill_switch.check("t")
        assert [one.id for one in await there.workers.drain([worker.id], wait="20s")] == [worker.id]
        with pytest.raises(errors.NotFound):
            await there.workers.drain(["nobody"])


async def test_an_uncertain_effect_is_settled_through_a_server(address, shared_url):
    async with Perdure(shared_url) as here, Perdure(address) as there:
        await here.run_until_paused("d", doubtful)
        (waiting,) = await there.effects.list()
        mine: Any = (await here.effects.list())[0]
        assert (waiting.task_id, waiting.key, waiting.call) == ("d", mine.key, mine.call)
        await there.effects.settle("d", "done", value=3)
        assert await there.effects.list() == []
        assert await here.run("d", doubtful) == 3


def test_blocking_code_has_the_same_parts(address):
    with sync.Perdure(address) as app:
        task = app.tasks.create("t", state={"n": 1})
        with task.attempt():
            task.checkpoint({"n": 2})
        assert [one.seq for one in app.checkpoints.page("t")] == [1]
        assert app.checkpoints.diff("t", 0).total == 1
        assert app.schedules.list() == []
        assert app.workers.list() is not None
        app.kill_switch.on(why="stop")
        assert [one.id for one in app.kill_switch.list()] == [None]
