"""A server that is killed while it carries a request out: the same request, with its key, is then done once.

Some pairs of a route and a place are tried here, others each day; `make torture` tries them all.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import random
from contextlib import suppress

import pytest

from perdure import errors
from perdure.server.http import repeats
from perdure.server.nouns.task import control
from tests.server import killing, recipes
from tests.support.http_server import make_key, request, serving
from tests.support.processes import ChildDied
from tests.torture import server_agents

pytestmark = pytest.mark.threat("T25")

PAIRS = killing.pairs()
SAMPLE = 10
QUICK = {"rate": 1_000_000, "burst": 1_000_000}


def todays_sample():
    day = "2026-01-01" if os.environ.get("CI") else str(datetime.datetime.now(datetime.UTC).date())
    return random.Random(day).sample(PAIRS, min(SAMPLE, len(PAIRS)))


def test_every_route_that_takes_a_key_has_a_request_to_be_killed_in():
    missing = [route.name for route in killing.routes_that_write() if route.name not in killing.RECIPES]
    assert missing == [], "add a recipe to tests/server/recipes.py"


@pytest.mark.parametrize(
    "name, point", todays_sample(), ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else value
)
async def test_a_request_that_was_cut_off_has_one_effect_and_its_first_answer(name, point, shared_url, children):
    await killing.once_though_killed(name, point, shared_url, children)


@pytest.mark.parametrize("name", sorted(killing.RECIPES))
async def test_a_request_whose_answer_was_lost_has_one_effect_and_its_first_answer(name, memory_url, monkeypatch):
    """What a server leaves that was killed before it kept the answer; for every route, without the killing."""
    method = name.partition(" ")[0]

    async with killing.without_units_after(memory_url):
        key, sent = await killing.prepare(memory_url, name)
        with monkeypatch.context() as dying:
            dying.setattr(repeats.Answers, "_keep", _lose)
            first, left = await killing.repeat(memory_url, method, key, sent)
        assert first.status < 300, first.body
        monkeypatch.setattr(repeats, "_is_over", lambda _: True)
        again, found = await killing.repeat(memory_url, method, key, sent)
        assert killing.is_same_answer(name, again, first), (first, again)
        assert found == left


async def test_a_task_that_was_opened_is_new_to_who_repeats_the_request_too(memory_url, monkeypatch):
    monkeypatch.setattr(repeats, "_is_over", lambda _: True)
    async with serving(memory_url) as server:
        key = await make_key(server, "admin")
        sent = {"key": key, "body": {"id": "one", "mode": "open"}}
        for name, statuses in {"a": [201, 201], "b": [200, 200]}.items():
            with monkeypatch.context() as dying:
                dying.setattr(repeats.Answers, "_keep", _lose)
                seen = [
                    await request(server, "POST", "/v1/tasks", headers={"idempotency-key": name}, **sent)
                    for _ in range(2)
                ]
            assert [reply.status for reply in seen] == statuses, seen


@pytest.mark.parametrize("is_away", [False, True])
async def test_a_request_that_failed_after_its_write_is_found_done_by_the_next_try(is_away, memory_url, monkeypatch):
    """As when the store goes away between the write and what the answer is made from; perhaps for longer than that."""

    async def fail(*_, **__):
        raise errors.StoreUnreachable("the store is away")

    async with serving(memory_url) as server:
        key = await make_key(server, "admin")
        task = await recipes.make_task(server)
        sent = {"headers": {"idempotency-key": "a"}, "key": key, "body": {}}
        with monkeypatch.context() as away:
            away.setattr(control, "_told", fail)
            if is_away:
                away.setattr(repeats.Answers, "_give_up", fail)
            assert (await request(server, "POST", "/v1/tasks/one/cancel", **sent)).status == 503
        assert (await task.record()).status == "cancelled"
        again = await request(server, "POST", "/v1/tasks/one/cancel", **sent)
        assert (again.status, again.json["status"]) == (200, "cancelled")


async def _lose(*_):
    """Keep no answer."""


async def test_agents_ride_out_two_servers_that_are_killed_at_random(tmp_path):
    """`make torture` has more agents, more kills, and PostgreSQL."""
    url = f"sqlite://{tmp_path}/store/p.db"
    await server_agents.check(url, seed=1, agents=2, items=4, kills=2)


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


@pytest.mark.parametrize("is_ours", [True, False])
async def test_a_refused_second_try_is_answered_only_if_the_first_has_done_it(is_ours, shared_url, children):
    """The task is cancelled either way. Who did it decides what the repeat is told."""
    name = "POST /v1/tasks/{task}/cancel"
    key, sent = await killing.prepare(shared_url, name)
    point = "server.carried_out" if is_ours else "server.marked"
    killed = children.start(killing.killed_while_sending, shared_url, "POST", key, sent, point, 1)
    with suppress(ChildDied):
        killed.heard()
    async with serving(shared_url) as server:
        if not is_ours:
            await (await server.app_of("default").tasks.handle("one")).cancel()
        for _ in range(2):  # a repeat of the repeat is told the same
            reply = await killing.send(server, "POST", key, sent)
            assert reply.status == (200 if is_ours else 409), reply.body
