"""A process that writes for somebody signs with their name: every event, checkpoint, decision and value."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Perdure, durable, pause
from perdure._store import Author, acting
from perdure._tasks import Shelf
from perdure.errors import InvalidInput

ADA = Author("ada", key="k7", via="http", address="192.0.2.7", request="r-19")
SIGNED = {"user": "ada", "key": "k7", "via": "http", "address": "192.0.2.7", "request": "r-19"}


def told(author: Any) -> dict[str, Any]:
    return {name: text for name, text in author.items() if name not in ("host", "pid")}


@durable
async def asks() -> str:
    return (await pause.approval("ship?")).by


@durable
async def plain() -> int:
    return 7


@pytest.mark.req("R57")
async def test_every_write_inside_the_block_is_signed_and_none_outside(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.create("t", state={}, agent="scout")
        with acting(ADA):
            made = await task.checkpoint({"n": 1})
            await task.append("list", 1)
            await task.pause("why?")
            await task.answer("because")
            await Shelf(app._store, "notes", dict).add("one", {})
        await task.complete()
        events = await app.tasks.events("t")
        assert [event.kind for event in events if told(event.author) == {"agent": "scout", **SIGNED}] == [
            "attempt started",
            "checkpoint",
            "checkpoint",
            "paused",
            "resumed",
        ]
        assert all("key" not in event.author for event in (events[0], events[-1]))
        assert all(event.author["pid"] for event in events)
        stored = {one.seq: one.author async for one in task.checkpoints()}
        assert told(stored[made.seq]) == {"agent": "scout", **SIGNED}
        kept = await Shelf(app._store, "notes", dict).get("one")
        assert kept is not None and told(kept.author) == SIGNED
        record = await task.record()
        assert record.state["answer"]["by"] == "ada"


@pytest.mark.req("R57")
async def test_authors_of_two_requests_at_once_are_not_mixed_up(url: str) -> None:
    async with Perdure(url) as app:

        async def request(user: str) -> None:
            with acting(Author(user)):
                for number in range(5):
                    await app.tasks.create(f"{user}-{number}", state={})

        users = ("ada", "bob", "eve")
        await asyncio.gather(*(request(user) for user in users))
        for user in users:
            for number in range(5):
                first = (await app.tasks.events(f"{user}-{number}"))[0]
                assert told(first.author) == {"user": user}


@pytest.mark.req("R57")
async def test_functions_that_begin_alike_are_each_signed_by_who_began_them(url: str) -> None:
    async with Perdure(url) as app:
        for id, user in (("a", "ada"), ("b", "bob"), ("c", "")):
            if user:
                with acting(Author(user)):
                    await app.run(id, plain)
            else:
                await app.run(id, plain)
        for id, user in (("a", "ada"), ("b", "bob"), ("c", app._store.presence.user)):
            assert {event.author["user"] for event in await app.tasks.events(id)} == {user}


@pytest.mark.req("R57")
async def test_a_decision_and_a_kill_switch_name_who_made_them(url: str) -> None:
    async with Perdure(url) as app:
        stopped = await app.run_until_paused("ship", asks)
        assert stopped.is_paused
        with acting(ADA):
            task = await app.tasks.handle("ship")
            await task.approve(by="ada")
            await app.kill_switch.on("other")
        assert await app.run("ship", asks) == "ada"
        kinds = {event.kind for event in await app.tasks.events("ship") if event.author.get("request") == "r-19"}
        assert kinds == {"approved"}
        (switch,) = await app.kill_switch.list()
        assert told(switch.by) == SIGNED


@pytest.mark.parametrize(
    "author",
    ["ada", Author(""), Author("a\0b"), Author("\ud800"), Author("x" * 501), Author("ada", key=7)],  # type: ignore[arg-type]
)
async def test_an_author_that_cannot_be_kept_is_refused(author: Any) -> None:
    with pytest.raises(InvalidInput), acting(author):
        raise AssertionError("the block was entered")
