"""Schedules, triggers and events over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perdure import Perdure, durable
from tests.support.asking import ALL, serving
from tests.support.waiting import look_again

MARK = "what-an-agent-left"


@durable(name="digest of a box")
async def digest(box: str, note: str = "") -> str:
    return f"{MARK} {box}"


@durable
async def invoice(currency: str, payment: dict[str, Any]) -> int:
    return int(payment["amount"])


async def test_a_schedule_is_made_changed_paused_run_and_removed(url):
    body = {"function": "digest of a box", "arguments": {"box": "in"}, "cron": "0 9 * * 1-5", "tz": "Europe/Berlin"}
    async with serving(url) as ask, Perdure(url) as app, app.worker():
        while not await app.functions():
            await look_again()
        status, made = await ask("POST", "/v1/schedules", {"id": "daily", **body})
        assert (status, made["cron"], made["is_paused"]) == (201, "0 9 * * 1-5", False)
        assert (await ask("POST", "/v1/schedules", {"id": "daily", **body}))[1]["code"] == "already_exists"
        _, run = await ask("POST", "/v1/schedules/daily/run", idempotency_key="1")
        assert (await ask("POST", "/v1/schedules/daily/run", idempotency_key="1"))[1]["uid"] == run["uid"]
        await app.tasks.wait_for(run["id"], timeout="120s")
        _, seen = await ask("GET", "/v1/schedules/daily")
        assert (len(seen["next_ticks"]), [one["uid"] for one in seen["last_runs"]]) == (5, [run["uid"]])
        assert seen["etag"] == made["etag"], "a run does not change what a schedule is"
        tag = f'"{seen["etag"]}"'
        assert (await ask("PUT", "/v1/schedules/daily", {**body, "cron": "0 8 * * *"}))[0] == 428
        status, changed = await ask("PUT", "/v1/schedules/daily", {**body, "cron": "0 8 * * *"}, if_match=tag)
        assert (status, changed["cron"]) == (200, "0 8 * * *")
        assert (await ask("PUT", "/v1/schedules/daily", body, if_match=tag))[1]["code"] == "stale_version"
        assert (await ask("DELETE", "/v1/schedules/daily", if_match=tag))[0] == 412
        assert (await ask("POST", "/v1/schedules/daily/pause"))[1]["is_paused"]
        _, resumed = await ask("POST", "/v1/schedules/daily/resume")
        assert not resumed["is_paused"]
        assert (await ask("DELETE", "/v1/schedules/daily", if_match=f'"{resumed["etag"]}"'))[0] == 204
        assert (await ask("GET", "/v1/schedules"))[1]["items"] == []
        assert (await ask("GET", f"/v1/tasks/~{run['uid']}"))[0] == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"cron": "0 9 * * *", "every": 60},
        {"cron": "99 9 * * *"},
        {"cron": "0 0 31 2 *"},
        {"cron": "0 9 * * *", "tz": "Mars/Olympus"},
        {"cron": "0 9 * * *", "tz": "../../etc/passwd"},
        {"every": 0},
        {"every": 0.5},
        {"every": 1e300},
        {"cron": "*" * 5000},
        {"cron": "0 9 * * *", "missed": "often"},
    ],
)
async def test_a_schedule_that_never_comes_is_refused(quick_url, wrong):
    async with serving(quick_url) as ask:
        body = {"id": "s", "function": "digest of a box", "version": 1, "arguments": {"box": "in"}, **wrong}
        assert (await ask("POST", "/v1/schedules", body))[0] == 422
        assert (await ask("GET", "/v1/schedules/s"))[0] == 404


async def test_a_cron_expression_is_told_across_the_change_of_clocks(quick_url):
    asked = {"cron": "30 2 * * *", "tz": "Europe/Berlin", "count": 3, "after": "2026-03-27T12:00:00Z"}
    async with serving(quick_url, frozenset({"tasks:read"})) as ask:
        status, found = await ask("POST", "/v1/cron", asked)
        assert (status, found["items"][0]) == (200, "2026-03-28T01:30:00.000Z")
        assert found["local"][2] == "2026-03-30T02:30:00+02:00"
        for wrong in ({"count": 0}, {"count": 101}, {"cron": "x"}, {"tz": "Nowhere"}, {"cron": "0 0 30 2 *"}):
            assert (await ask("POST", "/v1/cron", {**asked, **wrong}))[0] == 422


async def test_an_event_starts_a_function_once_however_often_it_is_sent(url):
    async with serving(url) as ask, Perdure(url) as app, app.worker():
        while not await app.functions():
            await look_again()
        made = {"id": "paid", "event": "payment", "function": "invoice", "arguments": {"currency": "EUR"}}
        status, trigger = await ask("POST", "/v1/triggers", made)
        assert (status, trigger["takes"]) == (201, "payment")
        sent = {"id": "evt_1", "data": {"amount": 42}}
        assert (await ask("POST", "/v1/events/payment", sent))[0] == 202
        assert (await ask("POST", "/v1/events/payment", sent))[0] == 200
        assert (await ask("POST", "/v1/events/payment", {"data": {"amount": 42}}, webhook_id="evt_1"))[0] == 200
        while await app.tasks.get("paid@evt_1") is None:
            await look_again()
        assert (await app.tasks.wait_for("paid@evt_1", timeout="120s")).result == 42
        assert (await ask("POST", "/v1/events/unknown", sent))[0] == 404
        assert (await ask("POST", "/v1/events/payment", {"id": "evt_2", "data": "text"}))[0] == 422
        assert (await ask("POST", "/v1/events/~paid", sent))[0] == 404
        _, seen = await ask("GET", "/v1/events")
        assert [(one["id"], one["led_to"]) for one in seen["items"]] == [("evt_1", {"paid": "paid@evt_1"})]


async def test_events_are_listed_page_by_page_and_long_ones_are_cut(quick_url):
    async with serving(quick_url) as ask:
        await ask("POST", "/v1/triggers", {"id": "t", "event": "ping", "task": "order-{n}", "signal": "paid"})
        for number in range(5):
            assert (await ask("POST", "/v1/events/ping", {"id": f"e{number}", "data": "x" * 70_000}))[0] == 202
        _, first = await ask("GET", "/v1/events", query="limit=3")
        _, second = await ask("GET", "/v1/events", query=f"limit=3&cursor={first['next']}")
        assert [one["id"] for one in first["items"] + second["items"]] == [f"e{number}" for number in range(5)]
        assert first["items"][0]["data"]["$cut"]["length"] == 70_000
        assert second["next"] is None
        assert (await ask("GET", "/v1/events", query=f"cursor={first['next']}x"))[1]["code"] == "bad_cursor"


async def test_a_trigger_is_changed_by_the_version_that_was_seen(url):
    body = {"event": "ping", "task": "order-{n}", "signal": "paid", "rate": {"most": 2, "per": 60}}
    async with serving(url) as ask:
        _, made = await ask("POST", "/v1/triggers", {"id": "t", **body})
        assert (made["rate"], made["signal"]) == ({"most": 2, "per": 60.0}, "paid")
        assert (await ask("POST", "/v1/triggers", {"id": "t", **body}))[0] == 409
        tag = f'"{made["etag"]}"'
        status, changed = await ask("PUT", "/v1/triggers/t", {**body, "signal": "late"}, if_match=tag)
        assert (status, changed["signal"]) == (200, "late")
        assert (await ask("PUT", "/v1/triggers/t", body, if_match=tag))[0] == 412
        assert (await ask("POST", "/v1/triggers/t/pause"))[1]["is_paused"]
        _, resumed = await ask("POST", "/v1/triggers/t/resume")
        assert (await ask("DELETE", "/v1/triggers/t", if_match=f'"{resumed["etag"]}"'))[0] == 204
        assert (await ask("GET", "/v1/triggers/t"))[0] == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"function": "invoice", "version": 1, "task": "t", "signal": "s"},
        {"task": "t"},
        {"task": "t", "signal": "~own"},
        {"task": "t", "signal": "s", "event": "~own"},
        {"task": "t", "signal": "s", "rate": {"most": 0, "per": 1}},
        {"task": "t", "signal": "s", "rate": {"most": 1, "per": -1}},
        {"function": "unheard-of", "version": 1},
    ],
)
async def test_a_trigger_that_does_nothing_is_refused(quick_url, wrong):
    async with serving(quick_url) as ask:
        status, _ = await ask("POST", "/v1/triggers", {"id": "t", "event": "ping", **wrong})
        assert status == 422, wrong
        assert (await ask("GET", "/v1/triggers/t"))[0] == 404


async def test_what_runs_left_is_shown_only_to_those_who_may_read_it(url):
    async with Perdure(url) as app, app.worker():
        await app.schedule("daily", digest, "in").every("1h")
        task = await app.schedules.run_now("daily")
        await app.tasks.wait_for(task, timeout="120s")
    async with serving(url, ALL - {"data:read"}) as stranger:
        for path in ("/v1/schedules", "/v1/schedules/daily", "/v1/functions", "/v1/triggers"):
            status, value = await stranger("GET", path)
            assert (status, MARK in json.dumps(value)) == (200, False)
        assert (await stranger("GET", "/v1/events"))[0] == 403


async def test_functions_are_listed_with_what_they_take(url):
    async with serving(url) as ask, Perdure(url) as app, app.worker():
        while not await app.functions():
            await look_again()
        _, found = await ask("GET", "/v1/functions")
        known = {one["name"]: one for one in found["items"]}
        assert set(known["invoice"]["arguments"]["properties"]) == {"currency", "payment"}
