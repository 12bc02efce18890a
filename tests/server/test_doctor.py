"""`perdure doctor` tells of servers, API keys and webhooks."""

from __future__ import annotations

import pytest

from perdure._ground.clock import MovableClock
from perdure.server import RunningServers
from perdure.server.checkup import examine_server
from tests.server.hooks.kit import post
from tests.support.http_server import make_key, serving
from tests.support.live_server import listening
from tests.support.receivers import Receiver, answer


async def told(app) -> list[tuple[str, str, str]]:
    return [(one.level, one.subject, one.what) for one in await examine_server(app)]


@pytest.mark.req("R146")
async def test_expired_and_idle_keys_are_noted(quick_url, clock: MovableClock):
    async with serving(quick_url) as server:
        keys = server.desk.keys
        await keys.make("short", ["viewer"], until=clock.now_ms() + 1000)
        await make_key(server, "viewer", name="idle")
        clock.advance(days=91)
        await make_key(server, "viewer", name="new")
        found = await told(server.app_of("default"))
        noted = [(level, what.split("'")[1]) for level, subject, what in found if subject == "api key"]
        assert sorted(noted) == [("note", "idle"), ("note", "short")]
        assert ("ok", "api keys", "2 keys are good") in found


async def test_a_disabled_webhook_is_a_problem(quick_url):
    async with post(quick_url, Receiver(answers=[answer(410)])) as here:
        hook, _ = await here.make(events=["task.created"])
        await here.app.tasks.open("a")
        await here.settle()
        found = await told(here.app)
        assert [(level, hook in what) for level, subject, what in found if subject == "webhook"] == [("problem", True)]


async def test_a_server_that_does_not_answer_is_a_problem(quick_url):
    async with serving(quick_url) as server:
        running = RunningServers(server.desk.vault)
        with listening(_healthy) as address:
            await running.come(address)
            await running.come("http://127.0.0.1:9")
            found = await told(server.app_of("default"))
    assert ("ok", "server", f"{address} answers") in found
    assert ("problem", "server", "http://127.0.0.1:9 does not answer") in found


async def _healthy(scope, receive, send) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})
