"""Slow tools: a handle on a task of its own, polled or waited for, by whatever process."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, effect, pause, step
from perdure._durable import only_waiting
from perdure._durable.lifecycle import task_handle
from perdure.errors import Conflict, InvalidInput, NotFound, TimedOut
from perdure.testing import always_replay
from tests.durable.effects_kit import wait_until
from tests.durable.kept_kit import World as Folder
from tests.durable.kept_kit import fresh_home, go_on, kill
from tests.support.processes import Nursery
from tests.torture.kills import Home

gates: dict[int, asyncio.Event] = {}


@step
async def work(number: int) -> int:
    await gates.setdefault(number, asyncio.Event()).wait()
    return number * 2


@durable
async def slow_tool(number: int) -> int:
    return await work(number)


@durable
async def quick_tool(number: int) -> int:
    return number


@pytest.fixture(autouse=True)
def _all_closed() -> None:
    gates.clear()


@pytest.mark.req("R121")
async def test_a_hundred_waits_on_one_loop_cost_one_look_at_a_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(url) as app, app.worker():
        handles = [await app.start(f"tool-{n}", slow_tool, n) for n in range(100)]
        waits = [asyncio.ensure_future(handle.result()) for handle in handles]
        await wait_until(lambda: len(gates) == 100)
        looks: list[int] = []
        query = app._store.engine.query

        def counted(name: str, params: Any) -> Any:
            if name == "find_live":
                looks.append(len(json.loads(params["uids"])))
            return query(name, params)

        monkeypatch.setattr(app._store.engine, "query", counted)
        await wait_until(lambda: looks[-1:] == [100])  # by now all of them have begun to wait
        looks.clear()
        await wait_until(lambda: len(looks) >= 3)
        assert set(looks) == {100}  # each look is for all of them
        assert not any([await handle.is_done() for handle in handles[:3]])
        for gate in gates.values():
            gate.set()
        assert await asyncio.gather(*waits) == [n * 2 for n in range(100)]
        assert await handles[0].is_done()


@pytest.mark.req("R121")
async def test_a_handle_is_taken_up_by_its_id(quick_url: str) -> None:
    async with Perdure(quick_url) as app, app.worker():
        await app.start("tool", quick_tool, 7)
        handle = await app.handle("tool", quick_tool)
        assert await handle.result() == 7 and await handle.is_done()
        with pytest.raises(Conflict, match="not 'slow_tool'"):
            await app.handle("tool", slow_tool)
        with pytest.raises(NotFound):
            await app.handle("nothing", quick_tool)


async def test_looking_inside_a_durable_function_is_recorded(quick_url: str) -> None:
    @durable
    async def polls() -> list[bool]:
        handle = await app.start("tool", quick_tool, 1)
        seen = [await handle.is_done()]
        while not seen[-1]:
            seen.append(await handle.is_done())
        return seen[-1:]

    async with Perdure(quick_url) as app, app.worker():
        with always_replay():
            assert await app.run("agent", polls) == [True]


# ── across processes ─────────────────────────────────────────────────────────────────────────────


@step
async def render(folder: str) -> str:
    Folder(Path(folder)).note("rendered")
    return "picture"


@durable
async def rendering(folder: str) -> str:
    return await render(folder)


async def begin(home: Home, folder: Path) -> Any:
    async with Perdure(home.url, namespace=home.namespace) as app:
        await app.start("tool", rendering, str(folder))
        Folder(folder).may_die("begun")
        handle = await app.handle("tool", rendering)
        async with app.worker():
            return await handle.result(), await handle.is_done()


@pytest.mark.req("R121")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_handle_survives_a_restart(request: Any, tmp_path: Path, children: Nursery, engine: str) -> None:
    home = fresh_home(request, engine, tmp_path)
    Folder(tmp_path).die_at("begun")
    kill(children, begin, home, tmp_path)
    assert go_on(children, begin, home, tmp_path) == ("picture", True)
    assert Folder(tmp_path).notes() == ["rendered"]


async def test_parents_that_wait_for_their_children_leave_them_room_in_the_worker(url: str) -> None:
    async with Perdure(url) as app:

        @durable
        async def parent(number: int) -> int:
            child = await app.start(f"child-{number}", quick_tool, number)
            return await child.result()

        parents = [await app.start(f"parent-{number}", parent, number) for number in range(3)]
        async with app.worker(concurrency=2):
            assert [await one.result() for one in parents] == [0, 1, 2]


@pytest.mark.parametrize("kind", [step, effect])
async def test_a_parent_that_works_beside_its_wait_keeps_its_place(quick_url: str, kind: Any) -> None:
    @kind
    async def working(number: int) -> int:
        await gates.setdefault(number, asyncio.Event()).wait()
        return number * 2

    async with Perdure(quick_url) as app:

        @durable
        async def parent() -> list[int]:
            child = await app.start("child", quick_tool, 1)
            return [*await asyncio.gather(child.result(), working(2))]

        started = await app.start("parent", parent)
        async with app.worker(concurrency=1):
            await wait_until(lambda: 2 in gates)
            assert only_waiting([(await started.task()).uid]) == 0
            gates[2].set()
            assert await started.result() == [1, 4]


async def test_a_number_is_no_time_out(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        handle = await app.start("tool", quick_tool, 1)
        for wait in (handle.result, partial(app.tasks.wait_for, "tool")):
            with pytest.raises(InvalidInput, match="timeout is 5") as refused:
                await wait(timeout=5)
            assert 'timeout="5s"' in refused.value.do


@durable
async def asking_tool() -> int:
    return await pause.input("how many?", int)


async def test_waiting_for_a_task_that_asks_a_person_says_so(
    quick_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(task_handle, "QUIET_SECONDS", 0.0)
    async with Perdure(quick_url) as app, app.worker():
        handle = await app.start("tool", asking_tool)
        await app.tasks.wait_for("tool", status="paused")
        with pytest.raises(TimedOut) as late:
            await handle.result(timeout=timedelta(0))
        waiting = asyncio.ensure_future(handle.result())
        await wait_until(lambda: bool(caplog.records))
        await (await handle.task()).answer(7, by="ada")
        assert await waiting == 7
    (said,) = [record.getMessage() for record in caplog.records if record.name == "perdure.durable"]
    assert said == late.value.do == "task tool waits for human_input: how many?; an answer: perdure answer tool"


async def test_waiting_for_a_task_that_nobody_works_on_says_so(
    quick_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(task_handle, "QUIET_SECONDS", 0.0)
    async with Perdure(quick_url) as app:
        handle = await app.start("tool", quick_tool, 1)
        with pytest.raises(TimedOut) as late:
            await handle.result(timeout=timedelta(0))
        assert "no worker is running" in late.value.do
        waiting = asyncio.ensure_future(handle.result())
        await wait_until(lambda: bool(caplog.records))
        async with app.worker():
            assert await waiting == 1
    (said,) = [record.getMessage() for record in caplog.records if record.name == "perdure.durable"]
    assert said.startswith("waiting for task tool, which no worker carries on: no worker is running")
