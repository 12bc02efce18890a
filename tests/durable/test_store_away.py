"""A store that cannot be reached is no failure of the function: its task goes on when the store is back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from perdure import Perdure, durable, pause, step
from perdure._store import Write
from perdure.errors import StoreUnreachable
from tests.durable.effects_kit import wait_until

ran: list[str] = []
# A leaf ends when it may: one that had ended already would not have to be waited for.
may_end = asyncio.Event()


@pytest.fixture(autouse=True)
def _fresh() -> None:
    global may_end
    ran.clear()
    may_end = asyncio.Event()


@step
async def visit_store_away(name: str) -> str:
    ran.append(name)
    return name


@durable
async def leaf_store_away() -> str:
    await may_end.wait()
    return "leaf"


class Outage:
    """From the moment it begins, the store refuses what is asked of it in one way, until it ends."""

    def __init__(self, app: Perdure, patch: pytest.MonkeyPatch) -> None:
        self._engine, self._patch = app._store.engine, patch
        self.hit = 0

    def begin(self, *, query: str = "", verb: str = "") -> None:
        read, commit = self._engine.query, self._engine.commit

        def no_query(name: str, params: Any) -> Any:
            return self._refuse() if name == query else read(name, params)

        def no_commit(writes: Sequence[Write]) -> Any:
            return self._refuse() if any(write.verb == verb for write in writes) else commit(writes)

        self._patch.setattr(self._engine, "query", no_query)
        self._patch.setattr(self._engine, "commit", no_commit)

    def _refuse(self) -> Any:
        self.hit += 1
        raise StoreUnreachable("the store cannot be reached", kept="all that was acknowledged", do="wait")

    def end(self) -> None:
        self._patch.undo()


@pytest.mark.req("R112")
@pytest.mark.parametrize("what", [{"verb": "start_function"}, {"query": "find_live"}, {"query": "get_task_by_uid"}])
async def test_a_child_that_cannot_be_started_or_awaited_is_so_again_later(
    url: str, monkeypatch: pytest.MonkeyPatch, what: dict[str, str]
) -> None:
    async with Perdure(url) as app, app.worker(queues=["leaves"]):
        away = Outage(app, monkeypatch)
        is_first = True

        @durable(name="parent_store_away")
        async def parent() -> str:
            nonlocal is_first
            await visit_store_away("before")
            if is_first:
                is_first = False
                away.begin(**what)
            child = await app.start("leaf", leaf_store_away.options(queue="leaves"))
            try:
                return await child.result()
            except Exception:
                return "the code must not see it"

        with pytest.raises(StoreUnreachable):
            await app.run("task", parent)
        assert away.hit
        away.end()
        may_end.set()
        record = await app.tasks.get("task")
        assert record is not None and record.status == "running"
        assert await app.run("task", parent) == "leaf"
    assert ran == ["before"]


@pytest.mark.req("R112")
async def test_a_question_that_could_not_be_asked_is_asked_later(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(url) as app:
        away = Outage(app, monkeypatch)
        is_first = True

        @durable(name="asking_store_away")
        async def asking() -> str:
            nonlocal is_first
            await visit_store_away("before")
            if is_first:
                is_first = False
                away.begin(verb="open_pause")
            return (await pause.approval("Go on?")).by

        with pytest.raises(StoreUnreachable):
            await app.run("task", asking)
        away.end()
        running = asyncio.create_task(app.run("task", asking))
        task = await app.tasks.open("task")

        async def is_asked() -> bool:
            return (await task.record()).status == "paused"

        await wait_until(is_asked)
        await task.approve(by="ann")
        assert await running == "ann"
    assert ran == ["before"]
