"""Calls recorded without a decorator, and asking where the running code is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import perdure
from perdure import Perdure, durable, effect, step
from perdure._ground.bridge import drive
from perdure.errors import InvalidInput, NoTask
from perdure.types import Current


@pytest.fixture
def app(quick_url: str) -> Iterator[Perdure]:
    app = Perdure(quick_url)
    yield app
    drive(app.close())


class Client:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def search(self, text: str, *, most: int = 3) -> str:
        self.asked.append(text)
        return f"{most} about {text}"


async def test_a_call_on_the_spot_is_not_run_again(app: Perdure) -> None:
    client, has_begun, is_second = Client(), asyncio.Event(), asyncio.Event()

    @durable
    async def agent() -> list[str]:
        found = [await perdure.call(client.search, text, name="search", kwargs={"most": 2}) for text in ("a", "b")]
        if not is_second.is_set():
            has_begun.set()
            await is_second.wait()
        return found

    first = asyncio.create_task(app.run("agent", agent))
    await has_begun.wait()
    first.cancel()
    await asyncio.wait([first])
    is_second.set()
    assert await app.run("agent", agent) == ["2 about a", "2 about b"]
    assert client.asked == ["a", "b"]


async def test_it_writes_the_same_journal_as_a_decorated_function(app: Perdure) -> None:
    async def look(page: int) -> int:
        return page + 1

    async def send(page: int) -> int:
        return page

    @durable
    async def decorated() -> int:
        return await effect(name="send")(send)(await step(name="look")(look)(1))

    @durable
    async def on_the_spot() -> int:
        return await perdure.call(send, await perdure.call(look, 1, name="look"), name="send", kind="effect")

    assert await app.run("decorated", decorated) == await app.run("spot", on_the_spot) == 2
    pages = [await app.journal.page(id) for id in ("decorated", "spot")]
    journals = [[(call.path, call.op, call.state, call.call, call.returned) for call in page] for page in pages]
    assert journals[0] == journals[1]
    assert [call[3] for call in journals[0]] == ["look(1)", "send(2)"]


async def test_an_effect_on_the_spot_is_in_the_inbox_with_its_arguments(app: Perdure) -> None:
    async def pay(order: str, cents: int) -> str:
        raise ConnectionError("gone")

    @durable
    async def buy() -> str:
        return await perdure.call(pay, "o-1", 500, kind="effect")

    assert (await app.run_until_paused("buy", buy)).is_paused
    [uncertain] = await app.effects.list()
    assert "pay('o-1', 500)" in uncertain.call


@pytest.mark.parametrize("make", [lambda: print, lambda: partial(Client().search, most=1), lambda: Client().search])
async def test_what_is_called_may_be_any_callable(app: Perdure, make: Callable[[], Any]) -> None:
    @durable
    async def agent() -> Any:
        found = perdure.call(make(), 2, name="it")
        return await found if hasattr(found, "__await__") else found

    assert await app.run("agent", agent) in (None, "1 about 2", "3 about 2")


async def test_without_a_task_a_step_just_runs_and_an_effect_is_refused() -> None:
    client = Client()
    assert await perdure.call(client.search, "a") == "3 about a"
    with pytest.raises(NoTask):
        await perdure.call(client.search, "b", kind="effect")
    with pytest.raises(InvalidInput, match="kind is 'activity'"):
        perdure.call(client.search, "b", kind="activity")  # type: ignore[arg-type]
    assert client.asked == ["a"]


async def test_the_running_code_knows_its_task_and_whether_it_is_in_a_body(app: Perdure) -> None:
    @step
    async def inner() -> list[Any]:
        return list(perdure.current() or ())

    @durable
    async def agent() -> list[Any]:
        return [*(perdure.current() or ()), *await inner()]

    assert perdure.current() is None
    assert await app.run("agent", agent) == ["agent", False, "agent", True]
    assert Current("a", False).task_id == "a"


def test_plain_functions_call_on_the_spot_without_await(tmp_path: Any) -> None:
    from perdure import sync

    ran = []

    def look(page: int) -> int:
        ran.append(page)
        return page + 1

    @sync.durable
    def agent() -> list[Any]:
        found = sync.call(look, 1, name="look")
        return [found, sync.current() == ("agent", False)]

    with sync.Perdure(tmp_path / "p.db") as app:
        assert app.run("agent", agent) == [2, True]
    assert ran == [1]
