"""A client that follows a task loses nothing and gets nothing twice, whatever becomes of its line and of its server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from perdure import Perdure, sync
from perdure.client.streams import listen
from perdure.errors import NotAllowed, NotFound
from perdure.server.live import Pace
from tests.server.streaming import Heard, a_server, hearing, until
from tests.support.http_server import make_key, serving
from tests.support.server_processes import LiveServer, live_server

PATIENCE = 120


async def test_a_task_is_followed_until_it_ends(url):
    async with Perdure(url) as app, Perdure(url) as other:
        task = await app.tasks.create("job", state={})
        seen = []
        async for event in other.tasks.follow("job"):
            seen.append(event)
            if event.kind == "created":
                await task.checkpoint({"n": 1})
            elif event.kind == "checkpoint":
                await task.complete({})
        assert seen == list(await app.tasks.events("job"))
        assert [event async for event in other.tasks.follow(task, after=len(seen) - 1)] == seen[-1:]
        with pytest.raises(NotFound):
            await anext(other.tasks.follow("nothing"))


async def test_a_task_is_followed_through_a_server(shared_url):
    with a_server(shared_url) as (address, _):
        async with Perdure(address) as far, Perdure(shared_url) as app:
            task = await app.tasks.create("job", state={})
            seen = []
            async for event in far.tasks.follow("job"):
                seen.append(event)
                if event.kind == "created":
                    await task.checkpoint({"n": 1})
                elif event.kind == "checkpoint":
                    await task.complete({})
            assert seen == list(await app.tasks.events("job"))
        with sync.Perdure(address) as blocked:
            assert list(blocked.tasks.follow("job")) == seen


async def test_a_client_hears_changes_and_is_told_when_it_may_not_any_more(shared_url):
    with a_server(shared_url) as (address, server):
        server.live.pace = Pace(beat=60.0, check=0.05)
        async with Perdure(address) as far, Perdure(shared_url) as app:
            heard = far.stream("tasks")
            assert (await anext(heard)).event == "hello"
            await app.tasks.create("job", state={})
            assert (await anext(heard)).data["task"]["id"] == "job"
            server._identity.caller = None
            with pytest.raises(NotAllowed):
                await anext(heard)


@contextmanager
def following(url: str, after: str, key: str) -> Iterator[tuple[LiveServer, Iterator[Heard]]]:
    """A server process, and what it tells of the task after an id."""
    with live_server(url, command="serve") as server:
        headers = {"Authorization": f"Bearer {key}", "Host": server.host}
        with hearing(f"http://{server.host}", "/v1/tasks/job/stream", after, **headers) as heard:
            yield server, heard


async def key_for(url: str) -> str:
    async with serving(url) as server:
        return await make_key(server, "admin")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_another_server_goes_on_where_a_dead_one_was(postgres_url, how):
    """Events 1 to n, each once: four servers on one PostgreSQL, each of which ends in the middle of the stream."""
    key = await key_for(postgres_url)
    async with Perdure(postgres_url) as app:
        task = await app.tasks.create("job", state={})
        numbers, after = [], ""
        for turn in range(3):
            with following(postgres_url, after, key) as (server, heard):
                for number in range(3):
                    await task.checkpoint({"turn": turn, "n": number})
                one = until(heard, "event")
                numbers.append(one.data["number"])
                server.process.send_signal(how)
                left = [] if how is signal.SIGKILL else list(heard)
                numbers += [one.data["number"] for one in left if one.event == "event"]
                after = next((one.id for one in reversed(left) if one.event == "event"), one.id)
                assert how is signal.SIGKILL or left[-1].event == "bye"
            await task.checkpoint({"while": "no server is there"})
        await task.complete({})
        last = (await app.tasks.events("job"))[-1].number
        with following(postgres_url, after, key) as (_, heard):
            while numbers[-1] != last:
                numbers.append(until(heard, "event").data["number"])
    assert numbers == list(range(1, last + 1))


async def test_a_client_follows_across_the_restart_of_its_server(tmp_path):
    url = f"sqlite://{tmp_path}/store/p.db"
    key = await key_for(url)
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={})
        with ExitStack() as stack:
            server = stack.enter_context(live_server(url, command="serve"))
            async with Perdure(f"http://{server.host}", key=key) as far:
                heard = listen(far._transport, "/v1/tasks/job/stream", {})
                numbers = []
                async for one in heard:
                    if one.event != "event":
                        continue
                    numbers.append(one.data["number"])
                    if len(numbers) == 3:
                        server.process.kill()
                        await asyncio.to_thread(server.process.wait, PATIENCE)
                        stack.enter_context(live_server(url, "--port", str(server.port), command="serve"))
                    if one.data["kind"] == "task.completed":
                        break
                    await (task.checkpoint({"n": len(numbers)}) if len(numbers) < 8 else task.complete({}))
                await heard.aclose()
        assert numbers == [event.number for event in await app.tasks.events("job")]
