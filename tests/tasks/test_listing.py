"""Finding tasks: filters, pages, history, and which store is meant."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure import Perdure
from perdure._ground.clock import moment
from perdure.errors import InvalidInput


@pytest.mark.req("R7")
async def test_pages_show_every_task_once_while_others_are_added(url):
    async with Perdure(url) as app:
        for n in range(25):
            await app.tasks.create(f"task-{n}", state={"n": n})
        seen, cursor, sizes = [], None, []
        while True:
            page = await app.tasks.list(limit=10, cursor=cursor)
            seen += [record.id for record in page]
            sizes.append(len(page))
            await app.tasks.create(f"added-{len(sizes)}", state={})
            cursor = page.cursor
            if cursor is None:
                break
        assert sizes == [10, 10, 5] and seen == [f"task-{n}" for n in reversed(range(25))]


@pytest.mark.req("R7")
async def test_tasks_are_found_by_status_reason_agent_tag_and_age(url, clock):
    async with Perdure(url) as app:
        await app.tasks.create("old", state={}, agent="a", tags={"team": "x", "env": "dev"})
        clock.advance(days=2)
        paused = await app.tasks.create("paused", state={}, agent="b", tags={"team": "x"})
        await paused.pause("wait", reason="rate_limit", retry_after=5)

        async def found(**filters):
            return {record.id for record in await app.tasks.list(**filters)}

        assert await found(status="paused") == {"paused"} and await found(status="running") == {"old"}
        assert await found(reason="rate_limit") == {"paused"} and await found(reason="human_input") == set()
        assert await found(agent="a") == {"old"}
        assert await found(tags={"team": "x"}) == {"old", "paused"}
        assert await found(tags={"team": "x", "env": "dev"}) == {"old"} and await found(tags={"team": "y"}) == set()
        assert await found(since=moment(clock.now_ms()) - timedelta(days=1)) == {"paused"}


@pytest.mark.parametrize("bad", [{"status": "odd"}, {"reason": "odd"}, {"limit": 0}, {"limit": 5000}, {"cursor": "2"}])
async def test_filters_that_make_no_sense_are_refused(bad):
    async with Perdure("memory://") as app:
        with pytest.raises(InvalidInput):
            await app.tasks.list(**bad)


async def test_namespaces_do_not_see_each_other(url):
    async with Perdure(url, namespace="a") as first, Perdure(url, namespace="b") as second:
        mine = await first.tasks.create("job", state={"of": "a"})
        theirs = await second.tasks.create("job", state={"of": "b"})
        assert mine.uid != theirs.uid
        assert [record.state for record in await second.tasks.list()] == [{"of": "b"}]


async def test_reading_makes_no_store_and_the_first_write_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with Perdure() as app:
        assert await app.tasks.get("job") is None and len(await app.tasks.list()) == 0
        assert list(tmp_path.iterdir()) == []
        await app.tasks.open("job")
    folder = tmp_path / ".perdure"
    assert folder.stat().st_mode & 0o777 == 0o700 and (folder / ".gitignore").read_text().endswith("*\n")
    assert (folder / "perdure.db").stat().st_mode & 0o777 == 0o600
    below = tmp_path / "deep" / "down"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    async with Perdure() as app:
        assert await app.tasks.get("job") is not None, "found upwards, like git's"
    assert list(below.iterdir()) == []
