"""Slow tools: a handle on a task of its own, polled or waited for, by whatever process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, step
from perdure.errors import Conflict, NotFound
from perdure.testing import always_replay
from tests.durable.effects_kit import wait_until
from tests.durable.kept_kit import World as Folder
from tests.durable.kept_kit import database, fresh_home, go_on, kill  # noqa: F401 - a fixture
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
