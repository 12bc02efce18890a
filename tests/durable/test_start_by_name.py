"""Durable functions started by name, in a process without their code; and what workers announce of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from perdure import Perdure, durable, step
from perdure._durable import announcement
from perdure._durable.declare import versions
from perdure._store import Write
from perdure._tasks import store_of
from perdure.errors import Conflict, InvalidId, InvalidInput, NotFound


@dataclass
class Order:
    number: int
    words: list[str]


@step
async def read(number: int) -> str:
    return f"page {number}"


@durable(name="by name", version=3)
async def by_name(order: Order, pages: int = 1) -> list[str]:
    return [*order.words, *[await read(order.number + page) for page in range(pages)]]


async def announce(app: Perdure, *, queues: tuple[str, ...] = ("default",)) -> None:
    """Be a worker that has announced its functions, without taking any task."""
    store = store_of(app.tasks)
    await store.presence.register()
    takes = [one for one in announcement() if one[0] == "by name"]
    said = {"queues": queues, "functions": [["by name", 3, False]], "takes": takes, "commands": False}
    await Write(store.committer, "announce", {"worker": store.presence.worker, "knows": json.dumps(said)}, key="w")


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Have this process forget the function, as one that never had its code; `monkeypatch.undo` brings it back."""

    def now() -> None:
        known = {key: made for key, made in versions._known.items() if key[0] != "by name"}
        monkeypatch.setattr(versions, "_known", known)

    return now


async def test_workers_announce_what_their_functions_take(url: str) -> None:
    async with Perdure(url) as app:
        assert list(await app.functions()) == []
        await announce(app, queues=("default", "slow"))
        (found,) = await app.functions()
        assert (found.name, found.version, found.queues) == ("by name", 3, ["default", "slow"])
        assert found.arguments is not None and found.arguments["required"] == ["order"]
        assert set(found.arguments["properties"]) == {"order", "pages"}
        assert found.workers == [app._store.presence.worker]


async def test_a_worker_says_so_in_its_row(url: str) -> None:
    async with Perdure(url) as app, app.worker():
        handle = await app.start("t", by_name, Order(1, []))
        await handle.result(timeout="30s")
        assert ("by name", 3) in [(one.name, one.version) for one in await app.functions()]


async def test_a_function_is_started_without_its_code(
    url: str, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    forget()
    async with Perdure(url) as app:
        arguments = {"order": {"number": 7, "words": ["a"]}}
        task = await app.start_by_name("t", "by name", 3, arguments, timeout="1h")
        again = await app.start_by_name("t", "by name", 3, arguments)
        assert again.uid == task.uid and task.status == "running"
        with pytest.raises(Conflict):
            await app.start_by_name("t", "by name", 3, {"order": {"number": 8, "words": ["a"]}})
        with pytest.raises(Conflict):
            await app.start_by_name("t", "another", 1)
        monkeypatch.undo()
        assert await app.run("t", by_name, Order(7, ["a"])) == ["a", "page 7"]


async def test_arguments_are_checked_against_what_workers_announce(url: str, forget: Callable[[], None]) -> None:
    async with Perdure(url) as app:
        await announce(app)
        forget()
        start, order = app.start_by_name, {"number": 1, "words": []}
        assert (await start("t", "by name", arguments={"order": order, "pages": 2})).status == "running"
        for wrong in ({}, {"order": 3}, {"order": order, "odd": 1}, {"order": {**order, "number": "one"}}):
            with pytest.raises(InvalidInput):
                await start("u", "by name", arguments=wrong)
        assert await app.tasks.get("u") is None


async def test_without_a_version_a_worker_has_to_know_the_function(quick_url: str, forget: Callable[[], None]) -> None:
    forget()
    async with Perdure(quick_url) as app:
        with pytest.raises(NotFound):
            await app.start_by_name("t", "by name")
        for odd in ({"version": 0}, {"version": True}, {"version": 1, "queue": ""}, {"version": 1, "priority": "high"}):
            with pytest.raises((InvalidInput, InvalidId)):
                await app.start_by_name("t", "by name", **odd)  # type: ignore[arg-type]
        assert await app.tasks.get("t") is None


async def test_a_schedule_is_added_and_run_without_the_functions_code(
    url: str, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(url) as app:
        await announce(app)
        forget()
        arguments = {"order": {"number": 2, "words": []}}
        kept = await app.schedules.add("daily", "by name", arguments, every="1h")
        assert (kept.function, kept.every) == ("by name", timedelta(hours=1))
        with pytest.raises(InvalidInput):
            await app.schedules.add("other", "by name", arguments)
        with pytest.raises(InvalidInput):
            await app.schedules.add("other", "by name", {"order": 1}, cron="0 9 * * *")
        first = await app.schedules.run_now("daily", key="press-1")
        assert await app.schedules.run_now("daily", key="press-1") == first
        assert await app.schedules.run_now("daily", key="press-2") != first
        assert [one.id for one in await app.schedules.list()] == ["daily"]
        monkeypatch.undo()
        assert await app.run(first, by_name, Order(2, [])) == ["page 2"]


async def test_a_fork_can_set_an_argument_that_was_left_out_without_the_code(
    url: str, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(url) as app:
        await app.run("t", by_name, Order(1, ["x"]))
        await announce(app)
        forget()
        task = await app.tasks.handle("t")
        await task.fork("u", at="0", set={"pages": 2})
        with pytest.raises(InvalidInput):
            await task.fork("v", at="0", set={"odd": 2})
        monkeypatch.undo()
        assert await app.run("u", by_name, Order(1, ["x"]), 2) == ["x", "page 1", "page 2"]
