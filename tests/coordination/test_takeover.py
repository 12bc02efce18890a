"""One owner and many viewers: a takeover is explicit, and the history says who took what from whom, and where."""

from __future__ import annotations

import asyncio

import pytest

from perdure import Perdure
from perdure.errors import LeaseHeld, LeaseLost
from tests.support.processes import Link, Nursery


async def hold(link: Link, url: str, id: str) -> str:
    """Work on a task; when told to, try to write once more."""
    async with Perdure(url) as app:
        task = await app.tasks.open(id)
        try:
            async with task.attempt():
                await task.checkpoint({"by": "first"})
                link.send(("said", "holding"))
                await asyncio.to_thread(link.recv)
                await task.checkpoint({"by": "first, too late"})
        except LeaseLost as lost:
            return f"lost: {lost.why}"
        return "still mine"


@pytest.mark.req("R56", "R55", "R57")
async def test_a_second_device_takes_over_and_the_history_shows_the_handover(shared_url, children: Nursery):
    first = children.start(hold, shared_url, "it")
    first.heard()
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("it")
        assert task.state == {"by": "first"}  # looking takes nothing
        with pytest.raises(LeaseHeld):
            await task.checkpoint({"by": "second"})
        async with task.attempt(take_over=True):
            await task.checkpoint({"by": "second"})
            assert first.ask().startswith("lost:")
        record = await task.record()
        assert record.state == {"by": "second"}
        one, two = record.attempts
        assert one.pid == first.pid and one.ended.startswith("taken over by ") and two.pid != first.pid
        (event,) = [event for event in await app.tasks.events("it") if event.kind == "attempt taken over"]
        assert event.data["from"] == {"user": one.user, "host": one.host, "pid": first.pid}
        assert event.author["pid"] == two.pid and event.author["host"] == two.host
        assert all({"user", "host", "pid"} <= event.author.keys() for event in await app.tasks.events("it"))


@pytest.mark.req("R56")
async def test_of_two_who_take_over_at_once_one_is_the_owner(shared_url, children: Nursery):
    first = children.start(hold, shared_url, "it")
    first.heard()
    others = [children.start(take, shared_url, "it") for _ in range(2)]
    said = [child.heard() for child in others]
    assert sorted(said) in (["mine", "mine"], ["mine", "not mine"])
    async with Perdure(shared_url) as app:
        record = await app.tasks.get("it")
        taken = [event for event in await app.tasks.events("it") if event.kind == "attempt taken over"]
        assert len(taken) == said.count("mine") and [one.ended_at for one in record.attempts][-1] is None
        owners = [child for child, answer in zip(others, said, strict=True) if answer == "mine"]
        kept = [child.ask() for child in owners]
        assert kept.count("written") == 1


async def take(link: Link, url: str, id: str) -> str:
    async with Perdure(url) as app:
        task = await app.tasks.open(id)
        try:
            async with task.attempt(take_over=True):
                link.send(("said", "mine"))
                await asyncio.to_thread(link.recv)
                await task.checkpoint({"by": "another"})
                return "written"
        except LeaseLost:
            return "lost"
        except LeaseHeld:
            return "not mine"
