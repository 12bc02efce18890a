"""`Perdure("http://…")`: the verbs of `app.tasks` through a server, with the same records and errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from perdure import Perdure, errors, sync
from perdure.server import make_app
from perdure.types import TaskFilter
from tests.support.asking import ALL, Known
from tests.support.live_server import listening


@contextmanager
def a_server(url: str) -> Iterator[str]:
    server = make_app(url)
    server._guard, server._identity = None, Known(ALL)
    with listening(server) as address:
        yield address


@pytest.fixture
def address(shared_url) -> Iterator[str]:
    with a_server(shared_url) as address:
        yield address


async def test_a_task_lives_its_life_through_a_server(address):
    async with Perdure(address) as app:
        task = await app.tasks.create("report", state={"n": 1}, tags={"team": "a"})
        async with task.attempt():
            made = await task.checkpoint({"n": 2}, label="half")
            assert (made.seq, made.label, made.data) == (1, "half", {"n": 2})
            await task.append("rows", 7)
            await task.mark_progress("copy", done=1, total=4)
        await task.pause("Ship?", reason="human_approval", expires="2d")
        record = await app.tasks.get("report")
        assert record is not None
        assert (record.status, record.pause.reason, record.tags) == ("paused", "human_approval", {"team": "a"})
        assert record.progress.percent == 25
        await task.resume(state={"approved": True})
        assert task.state == {"n": 2, "rows": [7], "approved": True}
        await task.complete({"ok": True})
        assert (await app.tasks.wait_for("report")).result == {"ok": True}
        assert next(event.kind for event in await app.tasks.events("report")) == "created"


async def test_tasks_are_listed_and_counted_through_a_server(address):
    async with Perdure(address) as app:
        for number in range(3):
            await app.tasks.create(f"t{number}", state={}, tags={"n": str(number)})
        first = await app.tasks.page(limit=2)
        assert [item.id for item in first] == ["t2", "t1"]
        assert [item.id for item in await app.tasks.page(limit=2, cursor=first.cursor)] == ["t0"]
        assert [item.id for item in await app.tasks.page(TaskFilter(tags={"n": "1"}))] == ["t1"]
        assert (await app.tasks.counts()).status["running"] == 3
        assert [record.id for record in await app.tasks.list(limit=2)] == ["t2", "t1"]


async def test_errors_are_those_of_the_library(address):
    async with Perdure(address) as app:
        task = await app.tasks.create("t", state={})
        with pytest.raises(errors.AlreadyExists) as exists:
            await app.tasks.create("t", state={})
        assert (exists.value.task_id, exists.value.status) == ("t", "running")
        with pytest.raises(errors.NotFound):
            await app.tasks.handle("nothing")
        with pytest.raises(errors.InvalidPayload):
            await task.pause("x", reason="scheduled_wait")
        await task.complete(1)
        with pytest.raises(errors.InvalidTransition) as refused:
            await task.complete(2)
        assert refused.value.do


async def test_of_two_processes_one_has_the_lease(address):
    async with Perdure(address) as one, Perdure(address) as two:
        first = await one.tasks.create("t", state={})
        second = await two.tasks.handle("t")
        async with first.attempt():
            with pytest.raises(errors.LeaseHeld):
                await second.checkpoint({"n": 2})
            async with second.attempt(take_over=True):
                with pytest.raises(errors.LeaseLost):
                    await first.checkpoint({"n": 1})
                await second.checkpoint({"n": 3})
        assert (await one.tasks.get("t")).state == {"n": 3}


async def test_what_others_wrote_meanwhile_is_kept(address):
    async with Perdure(address) as one, Perdure(address) as two:
        first = await one.tasks.create("t", state={"a": 1})
        second = await two.tasks.handle("t")
        await second.checkpoint({"a": 1, "b": 2})
        await first.checkpoint({"a": 9})
        assert (await one.tasks.get("t")).state == {"a": 9, "b": 2}
        with pytest.raises(errors.StaleVersion):
            await second.checkpoint({"a": 7, "b": 2})


async def test_a_value_that_json_lacks_is_refused_before_it_is_sent(address):
    async with Perdure(address) as app:
        with pytest.raises(errors.NotStorable):
            await app.tasks.create("t", state={"at": {1, 2}})
        assert await app.tasks.get("t") is None


async def test_code_does_not_run_through_a_server(address):
    async with Perdure(address) as app:
        with pytest.raises(errors.InvalidInput, match="through a server"):
            app.worker()


def test_blocking_code_uses_the_same_client(address):
    with sync.Perdure(address) as app:
        task = app.tasks.create("t", state={"n": 1})
        with task.attempt():
            task.checkpoint({"n": 2})
        task.complete("done")
        assert app.tasks.get("t").result == "done"


async def test_a_server_that_is_away_is_told(tmp_path):
    from perdure.client import Transport

    with pytest.raises(errors.StoreUnreachable, match="did not answer"):
        await Transport("http://127.0.0.1:9", None, patience=0).get("/v1")


async def test_what_waits_for_a_person_is_decided_through_a_server(address, shared_url):
    async with Perdure(shared_url) as here, Perdure(address) as app:
        for id in ("a", "b", "c"):
            task = await here.tasks.open(id)
            await task.pause(f"{id}?", reason="human_approval" if id != "b" else "human_input", schema=None)
        b = await here.tasks.handle("b")
        await b.resume()
        await b.pause("How many?", reason="human_input", schema={"type": "integer"})
        assert await app.inbox.count() == {"approval": 2, "input": 1, "effect": 0, "credential": 0}
        found, local = await app.inbox.page(), await here.inbox.page()
        assert found.items == local.items
        assert [item.task_id for item in await app.inbox.page(kinds=["input"])] == ["b"]
        first, question, second = sorted(found.items, key=lambda item: item.task_id)
        with pytest.raises(errors.InvalidInput) as refused:
            await app.inbox.answer(question.id, "abc")
        assert refused.value.errors == [{"path": [], "message": "it is not an integer: 'abc'"}]
        assert (await app.inbox.answer(question.id, 3, comment="enough")).answer.value == 3
        done = await app.inbox.approve(first.id, comment="ok", once="k")
        assert done.answer.how == "approved" and await app.inbox.approve(first.id, comment="ok", once="k") == done
        with pytest.raises(errors.AlreadyDecided) as second_one:
            await app.inbox.reject(first.id)
        assert (second_one.value.by, second_one.value.decision) == ("ada", "approved")
        assert (await app.inbox.get(first.id)).answer == (await here.inbox.get(first.id)).answer
        await app.inbox.reject(second.id)
        assert [item.is_open for item in await app.inbox.of("c")] == [False]
        with pytest.raises(errors.NotFound):
            await app.inbox.get("../tasks")
        with pytest.raises(errors.InvalidInput, match="signed with the name of the key"):
            await app.inbox.approve(first.id, by="eve")


async def test_another_system_answers_through_the_client(address, shared_url):
    async with Perdure(shared_url) as here, Perdure(address) as app:
        task = await here.tasks.open("job")
        token = await task.callback_token()
        await task.pause("CI", reason="external_dependency", callback=token)
        assert [await app.tasks.deliver(token), await app.tasks.deliver(token, 1)] == [True, False]
        assert (await task.record()).state["external"]["value"] is None


async def test_a_task_says_through_a_server_why_it_is_not_running(address):
    async with Perdure(address) as app:
        task = await app.tasks.create("ship", state={})
        await task.pause("Ship it?", reason="human_approval", expires="2d")
        found = await app.situation("ship")
        assert (found.kind, found.say, found.you) == ("you", "Ship it?", 1)
        assert found.until is not None and [way.verb for way in found.ways] == ["approve", "reject"]
        page = await app.tasks.page()
        assert (await app.situations(page.items))[task.uid].say == "Ship it?"
        assert [item.id for item in await app.tasks.page(TaskFilter(situation="you"))] == ["ship"]
        with pytest.raises(errors.NotFound):
            await app.situation("nothing")
