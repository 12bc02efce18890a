"""Pages of summaries, counts and changes: every filter and order, on every engine."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from perdure import Perdure, durable, step
from perdure._ground.clock import moment
from perdure._tasks import store_of
from perdure._tasks.lists import walks
from perdure.errors import InvalidInput
from perdure.types import TaskFilter


async def found(app, filter=None, **how):
    return [one.id for one in await app.tasks.page(filter, **how)]


async def every_page(app, filter=None, **how):
    """The ids of all pages, one after the other, and how many of the pages were stopped early."""
    ids, cursor, stopped = [], None, 0
    while True:
        page = await app.tasks.page(filter, cursor=cursor, **how)
        ids += [one.id for one in page]
        stopped += page.approximate
        cursor = page.cursor
        if cursor is None:
            return ids, stopped


@step
async def look(what: str) -> str:
    return what


@durable
async def digest(what: str) -> str:
    return await look(what)


@durable(version=2)
async def report() -> None: ...


@pytest.mark.req("R7")
async def test_a_summary_tells_what_the_row_tells(url):
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={"n": 1}, name="A job", agent="ann", tags={"team": "x"})
        await task.mark_progress("files", done=1, total=4)
        await task.pause("wait", reason="rate_limit", retry_after=60)
        (one,) = await app.tasks.page(parts=["pause", "children"])
        record = await app.tasks.get("job")
        assert (one.id, one.uid, one.status, one.reason) == ("job", record.uid, "paused", "rate_limit")
        assert (one.name, one.agent, one.tags, one.attempts) == ("A job", "ann", {"team": "x"}, 1)
        assert (one.function, one.version, one.queue) == (None, None, None)
        assert one.progress.done == 1 and one.etag == f"v{record.version}" and one.unreadable == ""
        assert (one.created_at, one.updated_at, one.started_at) == (
            record.created_at,
            record.updated_at,
            record.started_at,
        )
        assert one.due_at == record.pause.next_look_at and one.pause == record.pause
        assert (one.children.total, one.children.open) == (0, 0)


async def test_a_page_reads_neither_checkpoints_nor_attempts(url, monkeypatch):
    async with Perdure(url) as app:
        await app.tasks.create("large", state={"text": "x" * 100_000})
        asked = []
        query = app._store.engine.query
        monkeypatch.setattr(
            app._store.engine, "query", lambda name, params: (asked.append(name), query(name, params))[1]
        )
        assert await found(app, parts=["pause", "children"]) == ["large"]
        assert {name.partition("_by_")[0] for name in asked} <= {"page", "extent", "count_children"}


@pytest.mark.req("R7")
async def test_durable_functions_are_found_by_function_version_queue_and_parent(url):
    async with Perdure(url) as app:
        await app.run("d-1", digest, "mail")
        await app.start("r-1", report.options(queue="slow"))
        await app.tasks.create("plain", state={})
        (one,) = await app.tasks.page(TaskFilter(function=digest.name))
        assert (one.id, one.version, one.queue, one.status) == ("d-1", 1, "default", "completed")
        assert await found(app, TaskFilter(function=report.name, version=2)) == ["r-1"]
        assert await found(app, TaskFilter(function=report.name, version=1)) == []
        assert await found(app, TaskFilter(queue="slow")) == ["r-1"]
        assert await found(app, TaskFilter(queue="slow", status="completed")) == []
        assert await found(app, TaskFilter(parent="d-1")) == []
        assert await found(app, TaskFilter(parent="nowhere")) == []


async def test_children_are_found_by_their_parent_and_counted(url):
    async with Perdure(url) as app:

        @durable(name="tests.family")
        async def family() -> None:
            for n in range(3):
                await app.start(f"child-{n}", digest, "mail")

        await app.run("family-1", family)
        await app.run("child-0", digest, "mail")
        assert await found(app, TaskFilter(parent="family-1")) == ["child-2", "child-1", "child-0"]
        assert await found(app, TaskFilter(parent="family-1", status="completed"), sort="changed") == ["child-0"]
        summaries = {one.id: one.children for one in await app.tasks.page(parts=["children"])}
        assert (summaries["family-1"].total, summaries["family-1"].open) == (3, 2)
        assert summaries["child-0"].total == 0


@pytest.mark.req("R7")
async def test_pages_show_every_task_once_in_every_order_while_others_change(url, clock):
    async with Perdure(url) as app:
        for n in range(12):
            task = await app.tasks.create(f"task-{n}", state={}, tags={"odd": str(n % 2)})
            clock.advance(seconds=1)
            if n % 3 == 0:
                await task.pause("wait", reason="rate_limit", retry_after=100 - n)
            if n % 3 == 1:
                await task.complete()
        newest = [f"task-{n}" for n in reversed(range(12))]
        assert (await every_page(app, limit=5)) == (newest, 0)
        assert (await every_page(app, TaskFilter(tags={"odd": "1"}), limit=2))[0] == [
            id for id in newest if int(id[5:]) % 2
        ]
        due = ["task-0", "task-3", "task-6", "task-9"]  # each waits for 97 seconds less three for each before it
        assert (await every_page(app, sort="due", limit=3))[0] == due
        cursor, seen = None, []
        while True:
            page = await app.tasks.page(limit=5, cursor=cursor)
            seen += [one.id for one in page]
            await app.tasks.create(f"added-{len(seen)}", state={})
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == newest


@pytest.mark.req("R7")
async def test_what_changed_last_comes_first(url, clock):
    async with Perdure(url) as app:
        tasks = []
        for n in range(5):
            tasks.append(await app.tasks.create(f"task-{n}", state={}))
            clock.advance(seconds=1)
        await tasks[1].complete()
        clock.advance(seconds=1)
        await tasks[3].pause("wait", reason="human_input")
        expected = ["task-3", "task-1", "task-4", "task-2", "task-0"]
        assert (await every_page(app, sort="changed", limit=2))[0] == expected
        assert await found(app, TaskFilter(status=["running", "completed"]), sort="changed") == [
            "task-1",
            "task-4",
            "task-2",
            "task-0",
        ]
        when = (await app.tasks.get("task-1")).updated_at
        assert await found(app, TaskFilter(changed_since=when)) == ["task-3", "task-1"]


async def test_a_walk_that_is_stopped_goes_on_at_its_cursor(url, clock, monkeypatch):
    monkeypatch.setattr(walks, "LOOK", 3)
    monkeypatch.setattr(walks, "SHORT", 2)
    async with Perdure(url) as app:
        for n in range(10):
            task = await app.tasks.create(f"task-{n}", state={}, name="rare" if n in (1, 8) else "")
            clock.advance(seconds=1)
            await task.pause("wait", reason="rate_limit", retry_after=60)
        for sort, ids in (
            ("newest", ["task-8", "task-1"]),
            ("changed", ["task-8", "task-1"]),
            ("due", ["task-1", "task-8"]),
        ):
            seen, stopped = await every_page(app, TaskFilter(text="RARE"), sort=sort, limit=2)
            assert seen == ids and stopped >= 2, sort
        first = await app.tasks.page(TaskFilter(text="none"))
        assert first.approximate and first.cursor and len(first) == 0
        assert (await every_page(app, limit=4)) == ([f"task-{n}" for n in reversed(range(10))], 0)
        assert [one.id for one in await app.tasks.list(tags={}, agent="nobody")] == []
        assert len(await app.tasks.list(status="paused", reason="rate_limit", limit=10)) == 10


async def test_ids_that_begin_with_the_text_come_first_and_nothing_twice(url):
    async with Perdure(url) as app:
        for id, name in (("ab-old", ""), ("x-ab", ""), ("other", "an AB name"), ("ab-new", ""), ("zzz", "")):
            await app.tasks.create(id, state={}, name=name)
        for limit in (1, 2, 3, 4, 10):
            seen, _ = await every_page(app, TaskFilter(text="ab"), limit=limit)
            assert seen == ["ab-new", "ab-old", "other", "x-ab"], limit
        assert await found(app, TaskFilter(text="ab-old")) == ["ab-old"]
        assert await found(app, TaskFilter(text="")) == await found(app)


@pytest.mark.req("R8")
async def test_archived_tasks_are_listed_and_counted_only_when_asked_for(url):
    async with Perdure(url) as app:
        for n in range(4):
            await (await app.tasks.create(f"task-{n}", state={})).complete()
        await (await app.tasks.handle("task-1")).archive()
        await (await app.tasks.handle("task-3")).archive()
        assert await found(app) == ["task-2", "task-0"]
        assert await found(app, TaskFilter(archived=True)) == ["task-3", "task-2", "task-1", "task-0"]
        assert await found(app, TaskFilter(archived=True, status="completed"), sort="changed")
        assert (await app.tasks.counts()).status["completed"] == 2
        assert (await app.tasks.counts(TaskFilter(archived=True))).total == 4


async def test_tasks_that_became_history_and_other_namespaces_are_in_no_page(url):
    async with Perdure(url) as app, Perdure(url, namespace="other") as other:
        await (await app.tasks.open("job")).complete()
        await app.tasks.open("job", again=True)
        await other.tasks.create("theirs", state={}, agent="ann")
        for sort in ("newest", "changed"):
            assert await found(app, sort=sort) == ["job"]
        assert await found(app, TaskFilter(agent="ann")) == []
        assert (await app.tasks.counts()).total == 1
        assert [one.id for one in (await app.tasks.changes()).items] == ["job"]
        assert (await app.tasks.facets()).agents == {}


@pytest.mark.req("R7")
async def test_tasks_are_counted_by_status_and_reason(url):
    async with Perdure(url) as app:
        for n in range(6):
            task = await app.tasks.create(f"task-{n}", state={}, agent="ann" if n < 4 else "bob", tags={"n": str(n)})
            if n in (0, 1):
                await task.pause("wait", reason="rate_limit", retry_after=5)
            if n == 2:
                await task.pause("ask", reason="human_input")
            if n == 3:
                await task.complete()
        counts = await app.tasks.counts()
        assert counts.status == {
            "pending": 0,
            "running": 2,
            "paused": 3,
            "completed": 1,
            "failed": 0,
            "cancelled": 0,
        }
        assert counts.reason["rate_limit"] == 2 and counts.reason["human_input"] == 1 and counts.total == 6
        some = await app.tasks.counts(TaskFilter(agent="ann", status=["paused", "completed"]))
        assert (some.total, some.status["paused"], some.reason["rate_limit"]) == (4, 3, 2)
        facets = await app.tasks.facets()
        assert facets.agents == {"ann": 4, "bob": 2} and facets.tags == {"n": 6} and facets.functions == {}


async def test_changes_are_told_in_order_and_none_is_lost_in_one_millisecond(url, clock):
    async with Perdure(url) as app:
        for n in range(5):  # the clock stands still: all in one millisecond
            await app.tasks.create(f"task-{n}", state={})
        seen, after = [], None
        while True:
            changes = await app.tasks.changes(after, limit=2)
            seen += [one.id for one in changes.items]
            after = changes.watermark
            if not changes.more:
                break
        assert sorted(seen) == [f"task-{n}" for n in range(5)]
        assert (await app.tasks.changes(after)).items == []
        clock.advance(seconds=5)
        await (await app.tasks.handle("task-2")).complete()
        again = await app.tasks.changes(after)
        assert [(one.id, one.status) for one in again.items] == [("task-2", "completed")]
        clock.advance(seconds=5)
        task = await app.tasks.handle("task-2")
        await task.delete()
        last = await app.tasks.changes(again.watermark)
        assert (last.items, last.gone) == ([], [task.uid])
        assert (await app.tasks.changes(last.watermark)).watermark == last.watermark
        since = moment(clock.now_ms() - 5000)
        assert [one.id for one in (await app.tasks.changes(since)).items] == []
        assert (await app.tasks.changes(since)).gone == [task.uid]


@pytest.mark.parametrize(
    "bad",
    [
        {"sort": "odd"},
        {"limit": 0},
        {"limit": 5000},
        {"limit": "5"},
        {"cursor": "2"},
        {"cursor": "n:2"},
        {"cursor": "c:1:~"},
        {"cursor": "i:abc"},
        {"cursor": "n:\0"},
        {"parts": ["state"]},
    ],
)
async def test_pages_that_make_no_sense_are_refused(bad):
    async with Perdure("memory://") as app:
        with pytest.raises(InvalidInput):
            await app.tasks.page(**bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"status": "odd"},
        {"status": ["running", "odd"]},
        {"reason": "odd"},
        {"status": 3},
        {"function": 3},
        {"version": "1"},
        {"tags": {"a": 1}},
        {"tags": [("a", "b")]},
        {"since": datetime(2026, 1, 1)},  # noqa: DTZ001
        {"until": timedelta(days=1)},
    ],
)
def test_filters_that_make_no_sense_are_refused(bad):
    with pytest.raises(InvalidInput):
        TaskFilter(**bad)


async def test_a_situation_that_no_column_tells_is_refused_and_not_ignored():
    async with Perdure("memory://") as app:
        await (await app.tasks.open("job")).complete()
        assert await found(app, TaskFilter(situation="completed")) == ["job"]
        assert await found(app, TaskFilter(situation="completed", status="failed")) == []
        with pytest.raises(InvalidInput, match="odd"):
            await app.tasks.page(TaskFilter(situation="odd"))


@pytest.mark.parametrize("bad", ["x", "1:2", ":", "1:\0", datetime(2026, 1, 1)])  # noqa: DTZ001
async def test_watermarks_that_make_no_sense_are_refused(bad):
    async with Perdure("memory://") as app:
        with pytest.raises(InvalidInput):
            await app.tasks.changes(bad)


async def test_a_store_that_is_not_there_yet_has_empty_pages(tmp_path):
    async with Perdure(f"sqlite://{tmp_path}/none.db") as app:
        for sort in ("newest", "changed", "due"):
            assert await found(app, TaskFilter(text="x", agent="ann"), sort=sort) == []
        assert (await app.tasks.counts()).total == 0 and (await app.tasks.changes()).items == []
        assert not list(tmp_path.iterdir())


async def test_a_task_that_ends_while_a_page_is_read_is_on_it_once(url, monkeypatch):
    """A page is read status by status: one moves to a status that is read later, one to one that was read before."""
    async with Perdure(url) as app:
        early, late = await app.tasks.create("early", state={}), await app.tasks.create("late", state={})
        await late.pause("Go on?")
        rows_of, loop, moving = walks._rows, asyncio.get_running_loop(), []

        def read_slowly(engine, name, params):
            if params.get("lane") == "paused" and not moving:
                moving.append(asyncio.run_coroutine_threadsafe(move(), loop))
                if store_of(app.tasks).engine.kind != "memory":  # there a look keeps writers waiting
                    moving[0].result()
            return rows_of(engine, name, params)

        async def move():
            await late.resume()
            await early.complete()

        monkeypatch.setattr(walks, "_rows", read_slowly)
        assert sorted(await found(app)) == ["early", "late"]
        await asyncio.wrap_future(moving[0])
        assert sorted(await found(app)) == ["early", "late"]
