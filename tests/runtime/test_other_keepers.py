"""Where a task goes on under another keeper: nothing is made twice, and nothing that was elsewhere is called kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, pause, runtime
from perdure._runtime import Runtime
from perdure._runtime.bundles.task_bundle import bring_in, export
from perdure._runtime.context.context import forget_contexts
from perdure._runtime.keeper_client import client
from perdure.errors import Conflict, RequestFailed, UnitEnded
from tests.runtime.kit import Place
from tests.runtime.test_requests import Target
from tests.support.folders import remove_tree

pytestmark = pytest.mark.req("R79")


@pytest.fixture
def target() -> Iterator[Target]:
    target = Target()
    target.go.set()
    yield target
    target.server.shutdown()
    target.server.server_close()


def move(place: Place) -> None:
    """As on another machine with the same store: its keeper has never heard of the task."""
    place.clear()
    client.client_for(place.home).close()
    client._clients.clear()
    remove_tree(place.home)
    forget_contexts()


@asynccontextmanager
async def both_units(place: Place, target: Target, counted: Path) -> AsyncIterator[tuple[Runtime, Any, Any]]:
    async with place.runtime() as rt:
        request = await rt.request("plan", "POST", target.url, json={"a": 1})
        yield rt, request, await rt.command(["sh", "-c", f"echo ran >> {counted}"], key="deploy")


async def test_an_answer_that_was_read_is_there_for_the_next_keeper_and_nothing_is_sent(
    place: Place, target: Target, tmp_path: Path
) -> None:
    counted = tmp_path / "counted"
    async with both_units(place, target, counted) as (_, request, command):
        assert await request.read() == b"first second"
        assert (await command.result()).exit_code == 0
    move(place)
    async with both_units(place, target, counted) as (_, request, command):
        assert (request.level, request.verdict.reason) == ("kept", "it was answered; the answer is kept in the store")
        assert (await request.head()).status == 200
        assert [part async for part in request.chunks(after=6)] == [b"second"]
        assert command.level == "lost"
        assert "by a keeper that is not here" in command.verdict.reason
        with pytest.raises(UnitEnded, match="not made twice"):
            await command.result()
        await command.end()
    assert len(target.asked) == 1
    assert counted.read_text() == "ran\n"


async def test_an_answer_that_was_not_read_is_lost_and_the_request_is_not_sent_again(
    place: Place, target: Target, tmp_path: Path
) -> None:
    async with both_units(place, target, tmp_path / "counted") as (_, request, _):
        await request.head()
    move(place)
    async with both_units(place, target, tmp_path / "counted") as (rt, request, _):
        assert request.level == "lost"
        with pytest.raises(RequestFailed) as told:
            await request.read()
        assert told.value.sent
        with pytest.raises(Conflict, match="as another one"):
            await rt.request("plan", "POST", target.url, json={"a": 2})
        assert len(target.asked) == 1
        await rt.release("plan")
        again = await rt.request("plan", "POST", target.url, json={"a": 2})
        assert await again.read() == b"first second"
    assert len(target.asked) == 2


async def test_a_durable_function_goes_on_elsewhere_without_buying_again(
    place: Place, target: Target, tmp_path: Path
) -> None:
    counted = tmp_path / "counted"

    @durable(name=f"buys-{tmp_path.name}")
    async def buys() -> list[Any]:
        rt = await runtime.open()
        request = await rt.request("plan", "POST", target.url, json={"a": 1})
        said = await request.read()
        command = await rt.command(["sh", "-c", f"echo ran >> {counted}"], key="deploy")
        ended = await command.result()
        await pause.approval("Go on?")
        return [said.decode(), ended.exit_code, request.level, command.level]

    async with Perdure(place.url) as app:
        await app.start("buys", buys)
        async with app.worker():
            await app.tasks.wait_for("buys", status="paused")
    move(place)
    async with Perdure(place.url) as app:
        await (await app.tasks.handle("buys")).approve(by="ada")
        async with app.worker():
            record = await app.tasks.wait_for("buys", status="completed")
        assert record.result == ["first second", 0, "kept", "lost"]
    assert len(target.asked) == 1
    assert counted.read_text() == "ran\n"


async def test_a_bundle_takes_along_what_was_made_once(place: Place, target: Target, tmp_path: Path) -> None:
    async with both_units(place, target, tmp_path / "counted") as (_, request, _):
        await request.read()
    async with Perdure(place.url) as app:
        await export(app.tasks, "work", tmp_path / "work.perdure", move=True)
    other = Place(tmp_path / "other" / "perdure.db")
    try:
        async with Perdure(other.url) as app:
            await bring_in(app.tasks, tmp_path / "work.perdure")
            rt = await app.runtime("work")
            assert await (await rt.request("plan", "POST", target.url, json={"a": 1})).read() == b"first second"
        assert len(target.asked) == 1
    finally:
        other.clear()


async def test_what_was_noted_and_never_begun_is_made_by_the_same_keeper(
    place: Place, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.runtime() as rt:
        with monkeypatch.context() as dies:
            dies.setattr("perdure._runtime.task_runtime.opened", _dies)
            with pytest.raises(asyncio.CancelledError):
                await rt.request("plan", "POST", target.url)
        request = await rt.request("plan", "POST", target.url)
        assert await request.read() == b"first second"
    assert len(target.asked) == 1


async def _dies(*_: Any, **__: Any) -> Any:
    raise asyncio.CancelledError


async def test_what_another_keeper_had_is_not_called_kept(place: Place, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    file = tmp_path / "notes"
    file.write_text("a line\nanother\n")

    async def opened(rt: Runtime) -> dict[str, tuple[str, str]]:
        units: list[Any] = [
            await rt.shell("main", env=env),
            await rt.service("web", ["sleep", "1000"]),
            await rt.file(file, "rb"),
            await rt.listener(0),
            await rt.pipe("queue"),
            await rt.sqlite("books", tmp_path / "books.db"),
        ]
        return {unit.name: (unit.verdict.level, unit.verdict.reason) for unit in units}

    async with place.runtime() as rt:
        assert {level for level, _ in (await opened(rt)).values()} == {"kept"}
    move(place)
    async with place.runtime() as rt:
        first = await opened(rt)
        assert first.pop("books")[0] == "lost"
        assert {level for level, _ in first.values()} == {"rebuilt"}
        assert all(
            why.endswith("by a keeper that is not here; a new one was made in its place") for _, why in first.values()
        )
        again = await opened(rt)
        assert {level for level, _ in again.values()} == {"rebuilt", "lost"}
    forget_contexts()
    async with place.runtime() as rt:
        assert {level for level, _ in (await opened(rt)).values()} == {"kept"}
