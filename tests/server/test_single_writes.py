"""Writes without an attempt: the server takes the lease for one call. Refused ones change nothing, and they queue."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from tests.server import killing
from tests.support.http_server import make_key, request, serving
from tests.support.processes import ChildDied

MANY = 12


async def append(server, key, item, **sent):
    body = {"path": "items", "item": item}
    return await request(server, "POST", "/v1/tasks/one/append", key=key, body=body, **sent)


async def append_each(_, url, key, items):
    async with serving(url) as server:
        return [reply.status for reply in await asyncio.gather(*(append(server, key, item) for item in items))]


async def test_a_refused_write_is_no_failed_attempt_at_the_task(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        task = await server.app_of("default").tasks.create("one", state={"items": 1})
        for _ in range((await task.record()).config.max_retries + 2):
            assert (await append(server, key, 7)).status == 422
        assert (await task.record()).status == "running"
        assert {attempt.ended for attempt in (await task.record()).attempts} == {"released"}


async def test_writes_of_several_servers_for_one_task_wait_for_each_other(shared_url, children):
    async with serving(shared_url) as server:
        key = await make_key(server, "admin")
        task = await server.app_of("default").tasks.create("one", state={"items": []})
        other = children.start(append_each, shared_url, key, list(range(MANY)))
        here = await append_each(None, shared_url, key, list(range(MANY, 2 * MANY)))
        assert [*here, *await asyncio.to_thread(other.heard)] == [201] * 2 * MANY
        assert sorted((await task.record()).state["items"]) == list(range(2 * MANY))


async def test_an_attempt_keeps_single_writes_out(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        task = await server.app_of("default").tasks.create("one", state={"items": []})
        async with task.attempt():
            assert (await append(server, key, 7)).code == "lease_held"
        assert (await append(server, key, 7)).status == 201


async def test_a_repeated_write_has_its_first_answer_while_an_agent_works_on_the_task(shared_url, children):
    """Its server died between the write and the answer, and then an agent has begun."""
    name = "POST /v1/tasks/{task}/append"
    key, sent = await killing.prepare(shared_url, name)
    killed = children.start(killing.killed_while_sending, shared_url, "POST", key, sent, "server.carried_out", 1)
    with suppress(ChildDied):
        killed.heard()
    async with serving(shared_url) as server:
        task = await server.app_of("default").tasks.handle("one")
        made = [one async for one in task.checkpoints()][-1]
        holders = server.app_of("default").holders
        agent = await holders.register(host="elsewhere", pid=1, lease=timedelta(minutes=1))
        await holders.hold_for(agent.token, "one")
        reply = await killing.send(server, "POST", key, sent)
        assert (reply.status, reply.json["seq"]) == (201, made.seq)
