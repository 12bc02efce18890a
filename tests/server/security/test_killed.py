"""A server that is killed while it carries a request out: the same request, with its key, is then done once.

Some pairs of a route and a place are tried here, others each day; `make torture` tries them all.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import random

import pytest

from tests.server import killing
from tests.support.http_server import make_key, request, serving

pytestmark = pytest.mark.threat("T25")

PAIRS = killing.pairs()
SAMPLE = 12


def todays_sample():
    day = "2026-01-01" if os.environ.get("CI") else str(datetime.datetime.now(datetime.UTC).date())
    return random.Random(day).sample(PAIRS, min(SAMPLE, len(PAIRS)))


def test_every_route_that_takes_a_key_has_a_request_to_be_killed_in():
    missing = [route.name for route in killing.routes_that_write() if route.name not in killing.RECIPES]
    assert missing == [], "add a recipe to tests/server/killing.py, or say in HARMLESS why none is needed"


@pytest.mark.parametrize(
    "name, point", todays_sample(), ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else value
)
async def test_a_request_that_was_cut_off_has_one_effect(name, point, shared_url, children):
    await killing.once_though_killed(name, point, shared_url, children)


async def test_the_same_key_with_another_body_is_refused(url):
    async with serving(url) as server:
        key = await make_key(server, "admin")
        sent = {"key": key, "headers": {"idempotency-key": "a"}}
        await request(server, "POST", "/v1/tasks", body={"id": "one"}, **sent)
        other = await request(server, "POST", "/v1/tasks", body={"id": "one", "state": {"n": 1}}, **sent)
        assert (other.status, other.code) == (422, "key_reused")


async def test_of_fifty_equal_requests_at_once_one_has_an_effect_and_all_that_are_answered_agree(shared_url):
    async with serving(shared_url, rate=1000, burst=1000) as server:
        key = await make_key(server, "admin")
        await server.app_of("default").tasks.create("one", state={"items": []})
        sent = {"key": key, "headers": {"idempotency-key": "a"}, "body": {"path": "items", "item": 7}}
        replies = await asyncio.gather(*(request(server, "POST", "/v1/tasks/one/append", **sent) for _ in range(50)))
        done = [reply.json for reply in replies if reply.status == 201]
        waiting = [(reply.status, reply.code) for reply in replies if reply.status != 201]
        assert done and all(one == done[0] for one in done)
        assert set(waiting) <= {(409, "still_running")}
        record = await (await server.app_of("default").tasks.handle("one")).record()
        assert record.state == {"items": [7]}


async def test_a_key_on_a_request_that_only_reads_means_nothing(quick_url):
    async with serving(quick_url) as server:
        sent = {"key": await make_key(server, "admin"), "headers": {"idempotency-key": "a"}}
        before = await request(server, "GET", "/v1/tasks", **sent)
        await server.app_of("default").tasks.create("one", state={})
        after = await request(server, "GET", "/v1/tasks", **sent)
        assert (len(before.json["items"]), len(after.json["items"])) == (0, 1)


async def test_a_key_cannot_have_the_cookie_of_a_used_link_given_again(quick_url):
    async with serving(quick_url) as server:
        code = await server.desk.sessions.make_link("ada", ("tasks:read",))
        sent = {"body": {"code": code}, "headers": {"idempotency-key": "a"}}
        first = await request(server, "POST", "/v1/session", **sent)
        again = await request(server, "POST", "/v1/session", **sent)
        assert (first.status, again.status) == (201, 401)
        assert "set-cookie" not in again.headers
