"""Metrics say what the store and the events say, and nothing that a key may not see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from perdure import durable, effect
from perdure._ground.clock import MovableClock
from perdure._model import EVENT_NAMES, event_name
from perdure._tasks import release_lease, store_of
from perdure._tasks.checkpoints import carry
from perdure._tasks.webhooks import SENTENCES
from perdure.errors import RestoreFailed
from perdure.server.telemetry import CATALOGUE, Figures, full_name
from tests.support.http_server import HOST, make_key, request, serving
from tests.support.waiting import look_again

ROOT = Path(__file__).resolve().parents[2]


@effect
async def deliver() -> str:
    return "there"


@effect(failed_on=[ValueError])
async def refuse() -> None:
    raise ValueError("no")


@effect
async def vanish() -> None:
    raise OSError("the line broke")


@durable
async def errands() -> str:
    return await deliver()


@durable
async def broken() -> None:
    await refuse()


@durable
async def doubtful() -> None:
    await vanish()


@asynccontextmanager
async def lost_place(server, key: str) -> AsyncIterator[None]:
    """An open stream of a client that comes back with a place that this server does not know."""
    told, begun = asyncio.Event(), asyncio.Event()

    async def receive() -> dict[str, Any]:
        if not begun.is_set():
            begun.set()
            return {"type": "http.request", "body": b""}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        if b"event: reset" in message.get("body", b""):
            told.set()

    lines = {"host": HOST, "authorization": f"Bearer {key}", "last-event-id": "another.7"}
    scope = {
        "type": "http", "method": "GET", "path": "/v1/stream", "raw_path": b"/v1/stream",
        "query_string": b"topics=tasks", "headers": [(name.encode(), value.encode()) for name, value in lines.items()],
        "client": ("127.0.0.1", 50_001),
    }  # fmt: skip
    stream = asyncio.ensure_future(server(scope, receive, send))
    try:
        await asyncio.wait_for(told.wait(), 120)
        yield
    finally:
        stream.cancel()
        await asyncio.gather(stream, return_exceptions=True)


async def scrape(server, key) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample by its name and the values of its labels."""
    reply = await request(server, "GET", "/metrics", key=key)
    assert reply.status == 200 and reply.headers["content-type"].startswith("text/plain")
    found = text_string_to_metric_families(reply.body.decode())
    return {(one.name, tuple(one.labels.values())): one.value for family in found for one in family.samples}


@pytest.mark.req("R146")
async def test_counters_of_events_equal_the_events_of_the_tasks(url, clock: MovableClock):
    async with serving(url) as server:
        key = await make_key(server, "tasks:read")
        await scrape(server, key)
        app = server.app_of("default")
        for n in range(5):
            task = await app.tasks.open(f"t{n}")
            await task.checkpoint({"n": "x" * 2000})
            await task.pause("may I?", reason="human_approval")
            clock.advance(minutes=2)
            await task.approve(by="ada")
            if n < 3:
                await task.complete()
        expected: dict[str, int] = {}
        for n in range(5):
            for event in await app.tasks.events(f"t{n}"):
                expected[event_name(event.kind)] = expected.get(event_name(event.kind), 0) + 1
        for _ in range(3):  # each event is counted once, however often it is looked
            found = await scrape(server, key)
            counted = {
                labels[0]: int(value) for (name, labels), value in found.items() if name == "perdure_events_total"
            }
            assert counted == expected
        assert found["perdure_tasks", ("completed", "completed")] == 3
        tasks = {labels: value for (name, labels), value in found.items() if name == "perdure_tasks"}
        assert sum(value for (status, _), value in tasks.items() if status != "completed") == 2
        assert found["perdure_transitions_total", ("running", "completed")] == 3
        assert found["perdure_transitions_total", ("running", "paused")] == 5
        assert found["perdure_checkpoint_bytes_count", ()] == 5
        assert found["perdure_inbox_wait_seconds_count", ()] == 5
        assert found["perdure_inbox_wait_seconds_sum", ()] == pytest.approx(600)


async def test_a_task_with_very_many_events_between_two_looks_is_counted_whole(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "tasks:read")
        await scrape(server, key)
        task = await server.app_of("default").tasks.open("busy")
        for n in range(150):
            await task.checkpoint({"n": n})
        found = await scrape(server, key)
        assert found["perdure_events_total", ("checkpoint.stored",)] == 150


async def test_requests_are_counted_by_route_and_only_those_of_the_own_namespace(quick_url):
    async with serving(quick_url) as server:
        ours, theirs = await make_key(server, "viewer"), await make_key(server, "viewer", namespace="theirs")
        for name in ("secret-id-1", "secret-id-2"):
            await request(server, "GET", f"/v1/tasks/{name}", key=theirs)
        found = await scrape(server, theirs)
        assert found["perdure_http_requests_total", ("GET /v1/tasks/{task}", "404")] == 2
        assert ("perdure_http_requests_total", ("GET /v1/tasks/{task}", "404")) not in await scrape(server, ours)
        assert not any("secret-id" in str(place) for place in found)


async def test_a_request_that_is_repeated_counts_as_a_duplicate_that_was_prevented(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        for _ in range(3):
            how = {"body": {"id": "a"}, "headers": {"Idempotency-Key": "once"}}
            assert (await request(server, "POST", "/v1/tasks", key=key, **how)).status in (200, 201)
        assert (await scrape(server, key))["perdure_duplicates_prevented_total", ("request",)] == 2


async def test_metrics_need_a_scope_and_hold_no_text_of_agents(quick_url):
    async with serving(quick_url) as server:
        assert (await request(server, "GET", "/metrics")).status == 401
        other = await make_key(server, "events:send")
        assert (await request(server, "GET", "/metrics", key=other)).status == 403
        key = await make_key(server, "tasks:read")
        await scrape(server, key)
        task = await server.app_of("default").tasks.create(
            "MARKER", state={"MARKER": 1}, tags={"MARKER": "MARKER"}, agent="MARKER"
        )
        await task.fail("MARKER")
        assert b"MARKER" not in (await request(server, "GET", "/metrics", key=key)).body


# What an operator may rely on, by name and labels. A name leaves this list only with a line in the changelog.
PROMISED = {
    "tasks": "status situation", "transitions_total": "from to", "attempts_total": "ended", "inbox_open": "kind",
    "inbox_wait_seconds": "", "effects_total": "state", "effects_uncertain": "", "duplicates_prevented_total": "how",
    "checkpoint_seconds": "", "checkpoint_bytes": "", "resume_seconds": "", "restore_units_total": "level",
    "restore_failures_total": "", "lag_seconds": "queue", "workers": "state", "store_commit_seconds": "",
    "store_bytes": "", "http_requests_total": "route status", "http_seconds": "route", "streams": "",
    "feed_lag_seconds": "", "feed_resets_total": "why", "hook_deliveries_total": "state", "hook_lag_seconds": "",
    "loop_held_seconds_max": "",
}  # fmt: skip


@pytest.mark.req("R146")
def test_every_promised_metric_is_in_the_list_and_on_the_reference_page():
    known = {full_name(metric).removeprefix("perdure_"): " ".join(metric.labels) for metric in CATALOGUE}
    assert {name: known.get(name) for name in PROMISED} == PROMISED
    page = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
    assert [name for name in PROMISED if f"| `perdure_{name}` |" not in page] == []


@pytest.mark.req("R146")
async def test_a_day_of_work_moves_every_metric(shared_url, clock: MovableClock):
    """One story: an effect that succeeds, one that fails, one nobody knows of; a task that waits for a worker; a
    restore that came back and one that failed; a repeated request; a client with a stream whose place is lost."""

    async with serving(shared_url, streams_per_key=1) as server:
        key, other = await make_key(server, "admin"), await make_key(server, "admin", name="other")
        before = await scrape(server, key)
        app = server.app_of("default")
        await app.run("errands", errands)
        with pytest.raises(ValueError, match="no"):
            await app.run("broken", broken)
        await app.run_until_paused("doubtful", doubtful)
        await app.start("waits", errands)
        clock.advance(seconds=90)

        task = await app.tasks.open("shells")
        await carry(task, "report", {}, cause="report", kind="restored", told={"levels": {"kept": 2, "lost": 1}})
        hold = store_of(app.tasks).presence.held[task.uid]
        await release_lease(store_of(app.tasks), hold, "could not begin", RestoreFailed("web", "no port"))

        for _ in range(2):
            how = {"body": {"id": "over-http", "state": {}}, "headers": {"Idempotency-Key": "once"}}
            assert (await request(server, "POST", "/v1/tasks", key=key, **how)).status < 300
        path = "/v1/tasks/over-http/checkpoints"
        stored = await request(server, "POST", path, key=key, body={"state": {"n": 1}})
        assert stored.status == 201, stored.json

        paused = await app.tasks.open("asks")
        await paused.pause("may I?", reason="human_approval")
        await paused.approve(by="ada")
        await (await app.tasks.open("asks")).checkpoint({"n": 2})

        async with lost_place(server, key), lost_place(server, other):
            refused = await request(server, "GET", "/v1/stream", query="topics=tasks", key=key)
            assert refused.status == 429
            await app.tasks.create("seen-by-the-stream", state={})
            found = await scrape(server, key)
            while ("perdure_feed_lag_seconds_count", ()) not in found:
                await look_again()
                found = await scrape(server, key)
        server.telemetry.held.note(0.2, "GET /v1/tasks")
        server.telemetry.of("default").count("hook_deliveries", "delivered")  # tests/server/hooks has real receivers
        during, found = found, await scrape(server, key)

    def moved(name: str, *labels: str) -> float:
        return found.get((f"perdure_{name}", labels), 0) - before.get((f"perdure_{name}", labels), 0)

    assert (moved("effects_total", "done"), moved("effects_total", "failed")) == (1, 1)
    assert (moved("effects_total", "uncertain"), moved("effects_uncertain")) == (1, 1)
    assert moved("inbox_open", "effect") == 1
    assert moved("lag_seconds", "default") >= 90
    assert (moved("restore_units_total", "kept"), moved("restore_units_total", "lost")) == (2, 1)
    assert moved("restore_failures_total") == 1
    assert moved("attempts_total", "could not begin") == 1
    assert moved("duplicates_prevented_total", "request") == 1
    assert moved("feed_resets_total", "restart") == 2
    assert (during["perdure_streams", ()], found["perdure_streams", ()]) == (2, 0)
    assert moved("streams_refused_total") == 1
    seen = {name.removeprefix("perdure_") for (name, labels), value in found.items() if value}
    still = {name for name in PROMISED if name not in seen and f"{name}_count" not in seen}
    assert still <= {"hook_lag_seconds", "streams"}  # the one needs a receiver, the other was seen to move above


def test_labels_are_bounded():
    figures = Figures()
    for n in range(1000):
        figures.count("events", f"e{n}")
    assert len(figures.counters["events"]) == 201 and figures.counters["events"]["other",] == 800


def test_every_event_has_a_sentence():
    assert set(EVENT_NAMES.values()) <= set(SENTENCES)
