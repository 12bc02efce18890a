"""Whether the kill switch is on is asked by every task that begins; of many who ask at once, one looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from perdure import Perdure
from perdure._durable.control.control_watch import is_halted
from perdure.errors import StoreUnreachable
from tests.durable.effects_kit import wait_until


class Looks:
    """The looks that are made, each kept until it is let go."""

    def __init__(self, rows: Callable[..., Any]) -> None:
        self._rows = rows
        self.begun: list[asyncio.Future[None]] = []

    async def __call__(self, kind: Any, name: str, **params: Any) -> Any:
        self.begun.append(asyncio.get_running_loop().create_future())
        await self.begun[-1]
        return await self._rows(kind, name, **params)


async def look(app: Perdure, monkeypatch: pytest.MonkeyPatch, tasks: int) -> tuple[Looks, list[asyncio.Task[bool]]]:
    """So many tasks ask, and one look is under way."""
    store = app.tasks._store
    looks = Looks(store.rows)
    monkeypatch.setattr(store, "rows", looks)
    asking = [asyncio.create_task(is_halted(store, f"task-{number}")) for number in range(tasks)]
    await wait_until(lambda: bool(looks.begun))
    return looks, asking


@pytest.mark.req("R120")
async def test_of_many_that_ask_at_once_one_looks_for_all(quick_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(quick_url) as app:
        await app.kill_switch.on("task-1")
        looks, asking = await look(app, monkeypatch, 3)
        looks.begun[0].set_result(None)
        assert await asyncio.gather(*asking) == [False, True, False]
        assert len(looks.begun) == 1


async def test_one_that_is_cancelled_while_another_looks_leaves_the_others_alone(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(quick_url) as app:
        looks, asking = await look(app, monkeypatch, 3)
        asking[1].cancel()
        with suppress(asyncio.CancelledError):
            await asking[1]
        assert asking[1].cancelled()
        looks.begun[0].set_result(None)
        assert [await asking[0], await asking[2]] == [False, False]


async def test_those_who_waited_for_a_look_that_failed_fail_with_it(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a thousand tasks that begin while the database is away, the last is not told after a thousand time-outs."""
    async with Perdure(quick_url) as app:
        looks, asking = await look(app, monkeypatch, 3)
        looks.begun[0].set_exception(StoreUnreachable("away"))
        for one in asking:
            with pytest.raises(StoreUnreachable):
                await one
        assert len(looks.begun) == 1


async def test_one_that_looks_and_is_cancelled_leaves_the_look_to_another(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(quick_url) as app:
        looks, asking = await look(app, monkeypatch, 2)
        asking[0].cancel()
        await wait_until(lambda: len(looks.begun) == 2)
        looks.begun[1].set_result(None)
        assert await asking[1] is False
