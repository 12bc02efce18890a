"""S3 over HTTP: every pause is seen and ended through a server, which is killed with the workers at each of them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from perdure._ground.clock import MovableClock
from tests.scenarios import s3
from tests.scenarios.test_s3 import written
from tests.support.http_server import Reply, make_key, serving
from tests.support.processes import Nursery
from tests.support.server_processes import LiveServer, live_server
from tests.support.waiting import look_again


class Site:
    """A server that can be killed and started again, and callers with keys."""

    def __init__(self, url: str, keys: dict[str, str]) -> None:
        self._url, self._keys = url, keys
        self._stack = ExitStack()
        self.start()

    def start(self) -> None:
        self.server: LiveServer = self._stack.enter_context(live_server(self._url, command="serve"))

    def kill(self) -> None:
        self.server.process.kill()
        self.server.process.wait()

    def close(self) -> None:
        self._stack.close()

    def ask(self, who: str | None, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        raw = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            headers["Content_Type"] = "application/json"
        if who is not None:
            headers["Authorization"] = f"Bearer {self._keys[who]}"
        return self.server.ask(method, path, raw, **headers)

    async def paused(self, reason: str, message: str) -> dict[str, Any]:
        """The pause, when the task waits for this and no process has it."""
        async with asyncio.timeout(120):
            while True:
                record = self.ask("operator", "GET", "/v1/tasks/journey").json
                assert record["status"] in ("running", "paused"), record
                pause = record["pause"]
                if pause and (pause["reason"], pause["message"]) == (reason, message):
                    assert not [one for one in record["attempts"] if one["ended_at"] is None]
                    return dict(pause)
                await look_again()

    def open_question(self) -> str:
        (question,) = self.ask("operator", "GET", "/v1/inbox?task=journey").json["items"]
        return f"/v1/inbox/{question['id']}"


async def keys_of(url: str) -> dict[str, str]:
    async with serving(url) as server:
        names = {"operator": ("operator", "agent"), "looker": ("tasks:read",)}
        return {name: await make_key(server, *scopes, name=name) for name, scopes in names.items()}


@pytest.mark.req("R28", "R31", "R32", "R33", "R41", "R42", "R43", "R45", "R46", "R47", "R48", "R49")
async def test_every_pause_is_ended_over_http_while_servers_and_workers_are_killed(
    shared_url: str, clock: MovableClock, tmp_path: Path, children: Nursery
) -> None:
    fleet = s3.Fleet(children, shared_url, clock)
    site = Site(shared_url, await keys_of(shared_url))
    try:
        with s3.world_at(clock) as world:
            await _journey(site, fleet, world, clock, tmp_path)
    finally:
        site.close()
    begun = ["begin", "approved by operator", "7 of them", "early webhook", "webhook", "green", "waited", "called"]
    assert (tmp_path / "notes").read_text().splitlines() == [*begun, "after b", "yielded", "the new step"]
    assert len(world.calls) == 2 and world.calls[1] >= world.calls[0] + 2_000


async def _journey(site: Site, fleet: s3.Fleet, world: Any, clock: MovableClock, folder: Path) -> None:
    fleet.start()
    async with asyncio.timeout(120):
        while "s3.journey" not in [one["name"] for one in site.ask("operator", "GET", "/v1/functions").json["items"]]:
            await look_again()
    arguments = {"folder": str(folder), "address": world.address}
    body = {"id": "journey", "function": "s3.journey", "arguments": arguments}
    assert site.ask("operator", "POST", "/v1/tasks", body, Idempotency_Key="go").status == 201

    await site.paused("human_approval", "Shall we go?")
    fleet.kill()
    question = site.open_question()
    assert site.ask("looker", "POST", f"{question}/approve", {}).status == 403
    assert site.ask("operator", "POST", f"{question}/approve", {"comment": "go"}, Idempotency_Key="yes").status == 200
    again = site.ask("operator", "POST", f"{question}/approve", {"comment": "again"})
    assert (again.status, again.code) == (409, "already_decided")
    site.kill()
    site.start()
    assert site.ask("operator", "POST", f"{question}/approve", {"comment": "go"}, Idempotency_Key="yes").status == 200
    fleet.start()

    await site.paused("human_input", "How many?")
    fleet.kill()
    question = site.open_question()
    assert site.ask("operator", "POST", f"{question}/answer", {"value": "abc"}).status == 422
    assert site.ask("operator", "POST", f"{question}/answer", {"value": 7}).status == 200
    fleet.start("new")

    token = await written(folder / "early.token")
    wrong = f"{token[:-1]}{'a' if token[-1] != 'a' else 'b'}"
    assert site.ask(None, "POST", f"/v1/callbacks/{wrong}", {}).status == 404
    assert site.ask(None, "POST", f"/v1/callbacks/{token}", {"n": 1}).json["counted"] is True
    assert site.ask(None, "POST", f"/v1/callbacks/{token}", {"n": 2}).json["counted"] is False
    (folder / "early.posted").touch()

    await site.paused("external_dependency", "a webhook")
    fleet.kill()
    site.kill()
    site.start()
    assert site.ask(None, "POST", f"/v1/callbacks/{await written(folder / 'token')}", {"n": 3}).json["counted"] is True
    fleet.start("new")

    pause = await site.paused("external_dependency", f"{world.address}/ci")
    assert pause["next_look_at"] and pause["payload"]["url"] == f"{world.address}/ci"
    fleet.kill()
    world.state = "green"
    clock.advance(seconds=11)
    fleet.start("new")

    await site.paused("scheduled_wait", "3 s to pass")
    fleet.kill()
    site.kill()
    clock.advance(seconds=60)  # the machine sleeps over the timer
    site.start()
    fleet.start("new")

    await site.paused("rate_limit", "the api to take requests again")
    fleet.kill()
    clock.advance(seconds=1)
    fleet.start("new")
    assert len(world.calls) == 1
    clock.advance(seconds=2)

    pause = await site.paused("external_dependency", "task b to end")
    assert pause["payload"]["task"] == "b"
    fleet.kill()
    assert site.ask("operator", "POST", "/v1/tasks", {"id": "b"}, Idempotency_Key="b").status in (200, 201)
    assert site.ask("operator", "POST", "/v1/tasks/b/complete", {"result": {"b": "is done"}}).status == 200
    fleet.start("new")

    async with asyncio.timeout(120):
        while (record := site.ask("operator", "GET", "/v1/tasks/journey").json)["status"] != "completed":
            await look_again()
    assert record["result"] == ["go", 7, {"n": 1}, {"n": 3}, {"state": "green", "job": 812}, {"b": "is done"}]
    events = Counter(event["kind"] for event in site.ask("operator", "GET", "/v1/tasks/journey/events").json["items"])
    assert [count for kind, count in events.items() if kind.endswith((".approved", ".answered"))] == [1, 1], events
