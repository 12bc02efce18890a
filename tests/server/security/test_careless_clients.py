"""Clients that repeat keys with other bodies, send old versions, cursors of other lists, and headers and filters twice.

Each rule is tried on every route that it is about, as the table and the recipes have them.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from msgspec import structs

from perdure import Perdure
from perdure.server.table import Nothing, Unread, routes
from tests.server import killing, recipes
from tests.server.streaming import a_server, hearing
from tests.support.http_server import make_key, request, serving

QUICK = {"rate": 1_000_000, "burst": 1_000_000}
WITH_A_BODY = [
    route.name
    for route in killing.routes_that_write()
    if route.body is not None and route.media == "application/json" and not route.streams
]
WITH_A_VERSION = [route.name for route in routes() if route.match == "must"]


def _fields(shape: Any) -> set[str]:
    return {field.encode_name for field in structs.fields(shape)}


def lists() -> list[Any]:
    """Routes that answer page by page."""
    shaped = [route for route in routes() if route.method == "GET" and route.query not in (Nothing, Unread)]
    return [route for route in shaped if "cursor" in _fields(route.query)]


@pytest.mark.threat("T25")
@pytest.mark.parametrize("name", WITH_A_BODY)
async def test_a_key_that_is_sent_again_with_another_body_changes_nothing(name):
    url = f"memory://{os.urandom(6).hex()}"
    async with killing.without_units_after(url):
        key, sent = await killing.prepare(url, name)
        if sent.body is None or isinstance(sent.body, bytes) or "cookie" in sent.headers:
            return
        method = name.partition(" ")[0]
        first, left = await killing.repeat(url, method, key, sent)
        assert first.status < 300, first.body
        other, found = await killing.repeat(url, method, key, replace(sent, body=json.dumps(sent.body).encode() + b" "))
        assert (other.status, other.code) == (422, "key_reused"), other.body
        assert found == left


@pytest.mark.threat("T25")
@pytest.mark.parametrize("name", WITH_A_VERSION)
@pytest.mark.parametrize("given", ['"v999"', '"v0"', "*", "v1", 'W/"v1"', '"v1", "v2"', '"1"', '"v²"', '"v 1"', ""])
async def test_a_version_that_is_not_the_present_one_changes_nothing(name, given):
    url = f"memory://{os.urandom(6).hex()}"
    async with killing.without_units_after(url), serving(url, **QUICK) as server:
        key, sent = await make_key(server, "admin"), await killing.RECIPES[name](server)
        before = await killing.content(server)
        headers = {**sent.headers, "if-match": given}
        reply = await request(server, name.partition(" ")[0], sent.path, key=key, body=sent.body, headers=headers)
        assert reply.status in (400, 412), (given, reply.status, reply.body)
        assert await killing.content(server) == before
        headers.pop("if-match")
        bare = await request(server, name.partition(" ")[0], sent.path, key=key, body=sent.body, headers=headers)
        assert (bare.status, bare.code) == (428, "match_required")


@pytest.mark.threat("T2")
async def test_a_cursor_of_another_list_or_of_nowhere_is_refused_by_every_list(quick_url):
    async with serving(quick_url, **QUICK) as server:
        key = await make_key(server, "admin")
        await recipes.make_task(server)
        await server.app_of("default").tasks.create("two", state={})
        cursor = (await request(server, "GET", "/v1/tasks", query="limit=1", key=key)).json["next"]
        assert cursor
        bent = [cursor[:-1], cursor + "A", cursor.swapcase(), "A" * 4000, "~", "%00", "é"]
        for route in lists():
            path = route.path.replace("{task}", "one").replace("{hook}", "x")
            for given in [*bent, *([] if route.path == "/v1/tasks" else [cursor])]:
                reply = await request(server, "GET", path, query=f"cursor={quote(given, safe='')}", key=key)
                assert reply.status in (400, 404), (route.name, given[:20], reply.status)
        other = await request(server, "GET", "/v1/tasks", query=f"limit=1&status=running&cursor={cursor}", key=key)
        assert (other.status, other.code) == (400, "bad_cursor")


@pytest.mark.threat("T16")
@pytest.mark.parametrize(
    "name",
    ["authorization", "cookie", "host", "origin", "content-type", "content-encoding", "idempotency-key", "if-match",
     "perdure-fence", "perdure-holder", "perdure-namespace", "perdure-input-id"],
)  # fmt: skip
async def test_a_header_that_decides_something_is_sent_once(name, memory_url):
    async with serving(memory_url, **QUICK) as server:
        key = await make_key(server, "admin")
        await server.app_of("default").tasks.create("one", state={})
        usual = {"host": "127.0.0.1:7420", "content-type": "application/json", "authorization": f"Bearer {key}"}
        lines = [*usual.items(), (name, usual.get(name, "a")), *([] if name in usual else [(name, "b")])]
        sent = {"body": b'{"message": "x"}', "headers": lines}
        reply = await request(server, "POST", "/v1/tasks/one/pause", **sent)
        assert reply.status in (400, 421), (name, reply.body)
        record = await server.app_of("default").tasks.get("one")
        assert record is not None and record.status == "running"


@pytest.mark.threat("T14")
@pytest.mark.parametrize(
    "query", ["tag.a=1&tag.a=2", "limit=1&limit=2", "text=a&text=b", "archived=true&archived=false"]
)
async def test_a_filter_that_says_two_things_is_refused(query, memory_url):
    async with serving(memory_url, **QUICK) as server:
        reply = await request(server, "GET", "/v1/tasks", query=query, key=await make_key(server, "admin"))
        assert (reply.status, reply.code) == (400, "bad_request")


@pytest.mark.threat("T16")
@pytest.mark.parametrize("path", ["/v1/tasks/one/events", "/v1/tasks/one/journal", "/v1/tasks/one/checkpoints"])
@pytest.mark.parametrize(
    "number", ["-1", "9223372036854775807", "9223372036854775808", "9" * 30, "1.5", "1e3", "0x1", ""]
)
async def test_a_number_of_any_size_is_answered_and_is_no_defect(path, number, shared_url):
    async with serving(shared_url, **QUICK) as server:
        key = await make_key(server, "admin")
        await server.app_of("default").tasks.create("one", state={})
        for name in ("after", "limit", "line", "cursor"):
            reply = await request(server, "GET", path, query=f"{name}={number}", key=key)
            assert reply.status < 500, (name, reply.body)
        for part in (f"/{number}", f"/{number}/{number}"):
            reply = await request(server, "GET", path + part, key=key)
            assert reply.status < 500, (part, reply.body)


@pytest.mark.threat("T16")
@pytest.mark.parametrize("id", ["{feed}.²", "{feed}.-1", "{feed}." + "9" * 40, "{feed}.", ".", "e².j1.1", "e1.j1.²"])
async def test_a_strange_id_to_resume_a_stream_from_is_no_defect(id, quick_url):
    with a_server(quick_url) as (address, _):
        async with Perdure(quick_url) as app:
            await app.tasks.create("one", state={})
        with hearing(address, "/v1/stream?topics=tasks") as heard:
            feed = next(heard).data["feed"]
        headers = [(b"Last-Event-ID", id.replace("{feed}", feed).encode("latin-1"))]
        for path in ("/v1/stream?topics=tasks", "/v1/tasks/one/stream"):
            with (
                httpx2.Client(trust_env=False) as client,
                client.stream("GET", f"{address}{path}", headers=headers) as told,
            ):
                assert told.status_code in (200, 400), (path, told.read())
