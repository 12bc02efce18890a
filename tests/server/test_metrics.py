"""Metrics say what the store and the events say, and nothing that a key may not see."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from perdure._ground.clock import MovableClock
from perdure._model import EVENT_NAMES, event_name
from perdure._tasks.webhooks import SENTENCES
from perdure.server.telemetry import CATALOGUE, Figures, full_name
from tests.support.http_server import make_key, request, serving


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
        assert found["perdure_tasks", ("completed",)] == 3
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


async def test_every_metric_of_the_list_is_told(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "tasks:read")
        await scrape(server, key)
        body = (await request(server, "GET", "/metrics", key=key)).body.decode()
        for metric in CATALOGUE:
            assert f"# HELP {full_name(metric)} " in body, metric.name


def test_labels_are_bounded():
    figures = Figures()
    for n in range(1000):
        figures.count("events", f"e{n}")
    assert len(figures.counters["events"]) == 201 and figures.counters["events"]["other",] == 800


def test_every_event_has_a_sentence():
    assert set(EVENT_NAMES.values()) <= set(SENTENCES)
