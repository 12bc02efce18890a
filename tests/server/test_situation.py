"""Situations over HTTP: the same sentences, with the ways on as requests of this caller."""

from __future__ import annotations

import json

from perdure import Perdure, durable
from perdure.server.table import routes
from tests.support.asking import ALL, serving


@durable(name="situation over http")
async def nothing() -> None: ...


async def test_a_task_says_why_it_is_not_running_and_what_can_be_done(url):
    async with Perdure(url) as app, serving(url) as ask:
        await app.start("digest", nothing)
        status, found = await ask("GET", "/v1/tasks/digest/situation")
        assert (status, found["kind"], found["cause"], found["say"]) == (
            200,
            "stuck",
            "no_worker",
            "no worker is running",
        )
        assert found["headline"] == "Stuck: no worker is running"
        worker, cancel = found["ways"]
        assert (worker["cli"], worker["href"]) == ("perdure worker module:app", "")
        assert (cancel["method"], cancel["href"], cancel["scope"], cancel["allowed"], cancel["danger"]) == (
            "POST",
            "/v1/tasks/digest/cancel",
            "tasks:control",
            True,
            True,
        )
        assert (await ask(cancel["method"], cancel["href"], {}))[0] == 200
        assert (await ask("GET", "/v1/tasks/digest/situation"))[1]["kind"] == "cancelled"


@durable(name="called over http")
async def called(order: str, cents: int = 3) -> None: ...


async def test_the_call_that_a_task_carries_out_is_told_without_arguments_to_who_may_not_read_them(url):
    async with Perdure(url) as app, serving(url) as ask, serving(url, frozenset({"tasks:read"})) as viewer:
        await app.start("of-queue", called.options(queue="night"), "ord_9")
        await app.tasks.create("plain", state={})
        _, found = await ask("GET", "/v1/tasks/of-queue/situation")
        text = "called over http(order='ord_9')"
        assert found["call"] == {"function": "called over http", "version": 1, "queue": "night", "text": text}
        assert found["ways"][0]["cli"] == "perdure worker --queue night module:app"
        _, bare = await viewer("GET", "/v1/tasks/of-queue/situation")
        assert bare["call"] == {**found["call"], "text": ""}
        assert (await ask("GET", "/v1/tasks/plain/situation"))[1]["call"] is None


async def test_every_task_of_a_list_says_why(url):
    async with Perdure(url) as app, serving(url) as ask:
        await app.start("digest", nothing)
        task = await app.tasks.open("ship", state={})
        await task.pause("Ship it?", reason="human_approval")
        _, page = await ask("GET", "/v1/tasks")
        told = {one["id"]: one["situation"] for one in page["items"]}
        assert told["digest"]["kind"] == "stuck"
        assert (told["ship"]["kind"], told["ship"]["say"], told["ship"]["you"]) == ("you", "Ship it?", 1)
        assert set(told["ship"]) == {"kind", "say", "since", "until", "you"}


async def test_a_caller_without_data_read_gets_sentences_without_what_agents_wrote(url):
    marker = "MARKER"
    async with Perdure(url) as app, serving(url, frozenset({"tasks:read"})) as viewer:
        asked = await app.tasks.open("asked", state={})
        await asked.pause(marker, reason="human_approval", note=marker)
        failed = await app.tasks.open("failed", state={})
        await failed.fail({"type": "ValueError", "message": marker})
        done = await app.tasks.open("done", state={})
        await done.complete(marker)
        _, page = await viewer("GET", "/v1/tasks")
        told = {one["id"]: one["situation"]["say"] for one in page["items"]}
        assert told == {"asked": "an approval", "failed": "ValueError", "done": "completed"}
        for id in told:
            status, found = await viewer("GET", f"/v1/tasks/{id}/situation")
            assert status == 200 and marker not in json.dumps(found)
            assert not any(way["allowed"] for way in found["ways"] if way["scope"] == "tasks:control")


async def test_an_address_of_a_way_is_one_that_the_server_answers(url):
    served = {(route.method, route.segments) for route in routes()}
    async with Perdure(url) as app, serving(url, ALL) as ask:
        task = await app.tasks.open("a/b", state={})
        await task.fail("no")
        _, found = await ask("GET", f"/v1/tasks/~{task.uid}/situation")
        assert found["ways"]
        for way in found["ways"]:
            if way["href"]:
                assert f"~{task.uid}" in way["href"]
                shape = tuple("{task}" if part.startswith("~") else part for part in way["href"].split("/")[1:])
                assert (way["method"], shape) in served
