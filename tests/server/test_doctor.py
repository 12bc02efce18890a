"""`perdure doctor` tells of servers, API keys and webhooks."""

from __future__ import annotations

import asyncio
import re
from email.utils import formatdate
from pathlib import Path

import pytest

from perdure._ground.clock import MovableClock
from perdure.cli.processes.server_process import _vitals_of
from perdure.server import RunningServers
from perdure.server.checkup import examine_server
from perdure.server.telemetry import CATALOGUE, full_name
from tests.server.hooks.kit import post
from tests.support.http_server import make_key, request, serving
from tests.support.live_server import listening
from tests.support.receivers import Receiver, answer
from tests.support.waiting import look_again

ROOT = Path(__file__).resolve().parents[2]


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


async def test_what_a_server_noticed_is_noted(quick_url, clock: MovableClock):
    async with serving(quick_url, streams_per_key=0) as server:
        key = await make_key(server, "viewer", name="laptop")
        ahead = formatdate(clock.now_ms() / 1000 + 240, usegmt=True)
        await request(server, "GET", "/v1/counts", key=key, headers={"Date": ahead})
        await request(server, "GET", "/v1/counts", key=await make_key(server, "viewer"), headers={"Date": "yesterday"})
        assert (await request(server, "GET", "/v1/stream", query="topics=tasks", key=key)).status == 429
        server.telemetry.held.note(0.8, "GET /v1/tasks")
        running = RunningServers(server.desk.vault)
        with listening(_healthy) as address:
            name = await running.come(address)
            telling = asyncio.create_task(running.keep_telling(name, lambda: _vitals_of(server)))
            while not await running.vitals():
                await look_again()
            telling.cancel()
            found = await told(server.app_of("default"))
            await running.leave(name)
            assert await running.vitals() == []
        skewed = server.telemetry.skews
        assert len(skewed) == 1 and 239 <= next(iter(skewed.values())) <= 241
    said = {subject: (level, what) for level, subject, what in found if subject in ("streams", "event loop", "clock")}
    assert said["streams"] == ("note", f"{address} has refused 1 streams: all places were taken")
    assert said["event loop"][1].endswith("GET /v1/tasks held up all other requests for 0.8 s")
    assert " s ahead of the server's" in said["clock"][1]


async def test_the_certificate_of_a_receiver_is_looked_at_before_it_ends(quick_url, clock: MovableClock):
    for is_trusted in (True, False):
        async with post(quick_url, Receiver(is_trusted=is_trusted)) as here:
            hook, _ = await here.make(events=["task.created"])
            found = [(one.level, one.what) for one in await examine_server(here.app, here.sender) if hook in one.what]
            await here.hooks.remove(hook)
        if is_trusted:
            assert [level for level, what in found if "certificate" in what] in ([], ["note"])
        else:
            assert found[0][0] == "problem" and "is not good" in found[0][1]


@pytest.mark.req("R146")
def test_every_alarm_of_the_runbook_watches_a_metric_that_exists():
    page = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
    known = {full_name(metric): set(metric.labels) for metric in CATALOGUE}
    named = re.findall(r"`(perdure_[a-z_]+)\{([a-z]+)=", page) + re.findall(r"`(perdure_[a-z_]+)()[ `>]", page)
    assert len(named) >= 16
    assert [name for name, label in named if name not in known or (label and label not in known[name])] == []
    alarms = [line for line in page.splitlines() if line.startswith("| `perdure_")]
    assert all(line.count("|") == 4 and line.split("|")[3].strip() for line in alarms)


async def _healthy(scope, receive, send) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})
