"""Another namespace's things are not there, and what agents wrote is not shown to a key that may not read it."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from perdure.server import Server
from perdure.server.table import Route, routes
from tests.server import killing, recipes
from tests.support.http_server import make_key, request, serving

QUICK = {"rate": 1_000_000, "burst": 1_000_000}
MARKERS = [f"marker-{number:02d}-of-an-agent" for number in range(12)]


def readable_routes() -> list[Route]:
    """GETs that end by themselves."""
    return [route for route in routes() if route.method == "GET" and not route.streams and route.path != "/link"]


def address_of(route: Route, task: str) -> str:
    """The route's address for a task; other parts name something that may be there."""
    parts = {"{task}": task, "{n}": "1", "{line}": "1", "{position}": "1"}
    return "/".join(parts.get(part, "x" if part.startswith("{") else part) for part in route.path.split("/"))


def query_of(route: Route) -> str:
    return {"wait": "timeout=0", "diff": "from=1&to=2"}.get(route.segments[-1], "")


def told(reply: Any) -> dict[str, Any]:
    return {**reply.json, "request_id": ""}


@pytest.mark.threat("T2")
async def test_what_belongs_to_another_namespace_is_answered_as_what_is_not_there(url):
    wrong = []
    async with serving(url, **QUICK) as server:
        task = await recipes.make_task(server)
        key = await make_key(server, "admin", namespace="other")
        for route in readable_routes():
            if "{task}" not in route.path:
                continue
            nowhere = await request(server, "GET", address_of(route, "nowhere"), query=query_of(route), key=key)
            for name in ("one", f"~{task.uid}"):
                reply = await request(server, "GET", address_of(route, name), query=query_of(route), key=key)
                if (reply.status, told(reply)) != (404, told(nowhere)):
                    wrong.append((route.name, name, reply.status))
    assert wrong == []


@pytest.mark.threat("T2")
@pytest.mark.parametrize("name", sorted(killing.RECIPES))
async def test_no_request_changes_anything_in_another_namespace(name):
    async with serving(f"memory://{os.urandom(6).hex()}", **QUICK) as server:
        sent = await killing.RECIPES[name](server)
        if "cookie" in sent.headers:
            return  # a session is its own credential
        before = await killing.content(server)
        stranger = await make_key(server, "admin", namespace="other", name="stranger")
        await killing.send(server, name.partition(" ")[0], stranger, sent)
        after = await killing.content(server)
        for found in (before, after):
            found["keys"] = [key for key in found["keys"] if key[0] in ("other", "holder", "switcher")]
        assert after == before


async def plant(server: Server) -> None:
    """Tasks in which everything that an agent can write holds a marker."""
    marks = iter(MARKERS)
    app = server.app_of("default")
    running = await app.tasks.create("running", state={"note": next(marks)})
    async with running.attempt():
        await running.checkpoint({"note": next(marks)}, plan=next(marks), memory=next(marks), partial=next(marks))
        await running.mark_progress("reading", done=1, total=2, cursor=next(marks))
    paused = await app.tasks.create("paused", state={})
    await paused.pause(next(marks), reason="human_input")
    done = await app.tasks.create("done", state={})
    await done.complete({"note": next(marks)})
    failed = await app.tasks.create("failed", state={})
    await failed.fail({"type": "ValueError", "message": next(marks)})
    await running.signal("go", next(marks))
    await running.instruct(next(marks))


@pytest.mark.threat("T3")
async def test_a_key_without_data_read_is_shown_no_word_of_an_agent(url):
    shown: list[str] = []
    async with serving(url, **QUICK) as server:
        await plant(server)
        key, full = await make_key(server, "tasks:read"), await make_key(server, "admin")
        seen_by_admin = ""
        for route in readable_routes():
            for task in ("running", "paused", "done", "failed") if "{task}" in route.path else ("",):
                path = address_of(route, task)
                reply = await request(server, "GET", path, query=query_of(route), key=key)
                text = (
                    json.dumps(reply.json)
                    if reply.headers.get("content-type", "").endswith("json")
                    else str(reply.body)
                )
                shown += [f"{route.name} ({task}): {mark}" for mark in MARKERS if mark in text]
                seen_by_admin += str((await request(server, "GET", path, query=query_of(route), key=full)).body)
    assert shown == []
    assert sum(mark in seen_by_admin for mark in MARKERS) >= 8  # they are there to be seen


@pytest.mark.threat("T28")
async def test_a_server_that_only_reads_refuses_every_change_whatever_the_key(quick_url):
    async with serving(quick_url, read_only=True, **QUICK) as server:
        key = await make_key(server, "admin")
        open_anyway = {"POST /csp", "POST /v1/session"}
        for route in routes():
            if not route.writes or route.name in open_anyway:
                continue
            for how in ({"key": key}, {"peer_uid": os.geteuid()}):
                reply = await request(server, route.method, address_of(route, "one"), **how)
                assert reply.status == 403, route.name
                assert reply.code == "read_only" or route.who == "session", route.name
