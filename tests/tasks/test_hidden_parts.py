"""A task that is a hidden part of another: not in lists, in the family and the inbox, and deleted with its whole."""

from __future__ import annotations

import pytest

from perdure import Perdure, durable, pause
from perdure._tasks import Policy, collect, store_of
from perdure.errors import InvalidInput, InvalidTransition, NotFound
from perdure.types import TaskFilter
from tests.tasks.gc_kit import HOUR


@durable
async def tool(ask: bool) -> str:
    return (await pause.approval("Pay?")).by if ask else "seen"


async def one_whole(app):
    """The task `talk` with a part that has completed, one that asks, and a child that is not hidden."""
    talk = await app.tasks.create("talk", state={})
    part = tool.options(part_of="talk", task_name="look(x=1)")
    await app.run("talk:1", part, False)
    await app.run_until_paused("talk:2", part, True)
    await app.run("apart", tool, False)
    return talk


async def ids(app, **wanted):
    return {one.id for one in await app.tasks.page(TaskFilter(**wanted))}


async def test_hidden_parts_are_listed_and_counted_only_when_asked_for(url):
    async with Perdure(url) as app:
        await one_whole(app)
        assert await ids(app) == {one.id for one in await app.tasks.list()} == {"talk", "apart"}
        for sort in ("newest", "changed"):
            every = await app.tasks.page(TaskFilter(hidden=True), sort=sort)
            assert {one.id: one.hidden for one in every} == {
                "talk": False,
                "apart": False,
                "talk:1": True,
                "talk:2": True,
            }
        assert {one.id for one in await app.tasks.list(hidden=True)} == {"talk", "talk:1", "talk:2", "apart"}
        assert await ids(app, function=tool.name) == {"apart"} and await ids(app, text="talk") == {"talk"}
        assert await ids(app, parent="talk") == set() and await ids(app, parent="talk", hidden=True) == {
            "talk:1",
            "talk:2",
        }
        assert await ids(app, status="paused") == set() and await ids(app, status="paused", hidden=True) == {"talk:2"}
        counts, every = await app.tasks.counts(), await app.tasks.counts(TaskFilter(hidden=True))
        assert (counts.total, every.total, every.status["paused"]) == (2, 4, 1)
        assert {one.id for one in (await app.tasks.changes()).items} == {"talk", "apart"}
        assert (await app.tasks.facets()).functions == {tool.name: 1}
        record = await app.tasks.get("talk:1")
        assert record.hidden and record.name == "look(x=1)"


async def test_the_family_and_the_inbox_know_hidden_parts(url):
    async with Perdure(url) as app:
        await one_whole(app)
        family = await app.tasks.family("talk")
        assert [one.id for one in family.children] == ["talk:2", "talk:1"] and family.children_open == 1
        assert [one.id for one in (await app.tasks.family("talk:1")).parents] == ["talk"]
        for task in (None, "talk", "talk:2"):
            (item,) = (await app.inbox.page(task=task)).items
            assert (item.task_id, item.part_of, item.text) == ("talk:2", "talk", "Pay?")
        assert (await app.inbox.page(task="apart")).items == []
        assert (await app.inbox.get(item.id)).part_of == "talk"
        await app.inbox.approve(item.id, by="ada")
        assert await app.run("talk:2", tool.options(part_of="talk"), True) == "ada"


async def test_hidden_parts_are_deleted_with_their_whole_and_not_before(url, clock):
    async with Perdure(url) as app:
        talk = await one_whole(app)
        clock.advance(hours=2)
        assert [one.task_id for one in (await collect(store_of(app), Policy(finished_for=HOUR))).deleted] == ["apart"]
        await talk.complete()
        clock.advance(hours=2)
        report = await collect(store_of(app), Policy(finished_for=HOUR))
        assert report.deleted == [] and "'talk:2' has not ended" in report.held_back[0].why
        await (await app.tasks.open("talk:2")).cancel()
        assert [one.task_id for one in (await collect(store_of(app), Policy(finished_for=HOUR))).deleted] == [
            "talk:1",
            "talk:2",
            "talk",
        ]
        assert await ids(app, hidden=True, archived=True) == set()

        talk = await one_whole(app)
        await talk.complete()
        with pytest.raises(InvalidTransition, match="talk:2"):
            await talk.delete()
        await talk.delete(force=True)
        assert await ids(app, hidden=True) == {"apart"} and (await app.inbox.page()).items == []


async def test_a_part_needs_a_whole_that_is_there(url):
    async with Perdure(url) as app:
        with pytest.raises(NotFound, match="nobody"):
            await app.run("x", tool.options(part_of="nobody"), False)
        with pytest.raises(InvalidInput, match="depend"):
            tool.options(part_of="talk", depends_on=["other"])
        assert await app.tasks.get("x") is None
