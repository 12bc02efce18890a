"""Over HTTP: functions started by name, dry runs, one verb for many tasks, jobs, kill switches."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import Perdure, durable, effect
from perdure.pause import approval
from tests.support.asking import ALL, serving
from tests.support.waiting import look_again


@effect(undo=lambda result, amount: None)
async def charge(amount: int) -> int:
    return amount


@effect
async def mail(text: str) -> str:
    return text


@durable
async def shopping(amount: int) -> int:
    await charge(amount)
    await mail("a private text")
    await approval("ship it?")
    return amount


@durable
async def weighing(pages: int, name: str = "x") -> int:
    return pages


async def ended(ask: Any, job: Any) -> Any:
    """The job, once it no longer runs."""
    while job["state"] == "running":
        await look_again()
        _, job = await ask("GET", f"/v1/jobs/{job['id']}")
    return job


async def test_a_function_is_started_by_its_name_and_attached_to(url):
    body = {"id": "w", "function": "weighing", "arguments": {"pages": 3}, "tags": {"a": "b"}, "timeout": 60}
    async with serving(url) as ask, Perdure(url) as app, app.worker():
        status, made = await ask("POST", "/v1/tasks", body, idempotency_key="1")
        assert (status, made["name"], made["tags"]) == (201, "weighing", {"a": "b"})
        assert (await app.tasks.wait_for("w", timeout="120s")).result == 3
        assert (await ask("POST", "/v1/tasks", body, idempotency_key="2"))[0] == 200
        other = {**body, "arguments": {"pages": 4}}
        assert (await ask("POST", "/v1/tasks", other, idempotency_key="3"))[0] == 409


@pytest.mark.parametrize(
    "wrong",
    [
        {"arguments": {"pages": "many"}},
        {"arguments": [1]},
        {"arguments": {"pages": 1}, "state": {"n": 1}},
        {"arguments": {"pages": 1}, "budget": {"tokens": -1}},
        {"arguments": {"pages": 1}, "budget": {"gold": 1}},
        {"arguments": {"pages": 1}, "timeout": 0},
        {"arguments": {"pages": 1}, "timeout": 1e300},
        {"arguments": {"pages": 1}, "queue": ""},
        {"arguments": {"pages": 1}, "priority": 2**40},
        {"function": None, "arguments": {"pages": 1}},
    ],
)
async def test_a_start_that_does_not_fit_writes_nothing(quick_url, wrong):
    async with serving(quick_url) as ask:
        body = {"id": "w", "function": "weighing", **wrong}
        assert (await ask("POST", "/v1/tasks", body, idempotency_key="1"))[0] == 422
        assert (await ask("GET", "/v1/tasks/w"))[0] == 404


async def test_a_function_that_no_worker_knows_is_not_found(quick_url):
    async with serving(quick_url) as ask:
        body = {"id": "w", "function": "unheard-of", "arguments": {}}
        assert (await ask("POST", "/v1/tasks", body, idempotency_key="1"))[0] == 404


async def test_cancel_rollback_and_fork_are_rehearsed(url):
    async with Perdure(url) as app:
        await app.run_until_paused("order", shopping, 5)
    async with serving(url) as ask, serving(url, ALL - {"data:read"}) as stranger:
        _, seen = await ask("POST", "/v1/tasks/order/cancel", {"dry_run": True})
        assert ([one["call"] for one in seen["undone"]], [one["name"] for one in seen["kept"]]) == (
            ["charge(5)"],
            ["mail"],
        )
        _, bare = await stranger("POST", "/v1/tasks/order/cancel", {"dry_run": True})
        assert "call" not in bare["undone"][0]
        tag = f'"v{(await ask("GET", "/v1/tasks/order"))[1]["version"]}"'
        how = {"to": 0, "effects": "keep", "dry_run": True}
        _, back = await ask("POST", "/v1/tasks/order/rollback", how, if_match=tag)
        assert [one["name"] for one in back["kept"]] == ["charge", "mail"]
        status, fork = await ask("POST", "/v1/tasks/order/fork", {"at": "charge", "dry_run": True}, idempotency_key="f")
        assert (status, fork["id"], [one["name"] for one in fork["kept"]]) == (200, "order-fork", ["charge"])
        assert (fork["arguments"], fork["state"]) == ({"amount": 5}, {})
        assert (
            "arguments"
            not in (await stranger("POST", "/v1/tasks/order/fork", {"dry_run": True}, idempotency_key="h"))[1]
        )
        wrong = {"set": {"dollars": 5}, "dry_run": True}
        status, problem = await ask("POST", "/v1/tasks/order/fork", wrong, idempotency_key="i")
        assert (status, problem["errors"][0]["path"]) == (422, ["dollars"])
        missing = {"at": "nothing", "dry_run": True}
        assert (await ask("POST", "/v1/tasks/order/fork", missing, idempotency_key="g"))[0] == 404
        assert (await ask("GET", "/v1/tasks/order-fork"))[0] == 404
        assert (await ask("GET", "/v1/tasks/order"))[1]["status"] == "paused"


async def test_many_tasks_are_cancelled_after_a_dry_run(url):
    async with Perdure(url) as app:
        for number in range(3):
            await app.run_until_paused(f"order-{number}", shopping, number)
        done = await app.tasks.create("order-done", state={})
        await done.complete()
    asked: dict[str, Any] = {"filter": {"text": "order"}, "verb": "cancel", "with": {"undo": False}}
    async with serving(url) as ask:
        status, plan = await ask("POST", "/v1/bulk", {**asked, "dry_run": True}, idempotency_key="1")
        assert (status, plan["count"], plan["refused_count"], plan["refused"][0]["id"]) == (200, 3, 1, "order-done")
        _, undoing = await ask("POST", "/v1/bulk", {**asked, "with": {}, "dry_run": True}, idempotency_key="1b")
        assert undoing["effects_undone"] == {"charge": 3}
        await ask("POST", "/v1/tasks", {"id": "order-new"}, idempotency_key="2")
        confirmed = {**asked, "dry_run": False, "confirm": plan["confirm"]}
        status, job = await ask("POST", "/v1/bulk", confirmed, idempotency_key="3")
        assert status == 202
        job = await ended(ask, job)
        assert (job["state"], job["done"], job["total"], job["result"]["done"]) == ("done", 3, 3, 3)
        statuses = [(await ask("GET", f"/v1/tasks/order-{name}"))[1]["status"] for name in (0, 1, 2, "new")]
        assert statuses == ["cancelled"] * 3 + ["running"]


async def test_named_tasks_are_rehearsed_and_no_other_is_touched(url):
    async with Perdure(url) as app:
        for number in range(2):
            await app.run_until_paused(f"order-{number}", shopping, number)
        uids = [(await app.tasks.handle(f"order-{number}")).uid for number in range(2)]
    asked: dict[str, Any] = {"uids": uids[:1], "verb": "cancel"}
    async with serving(url) as ask:
        _, plan = await ask("POST", "/v1/bulk", {**asked, "dry_run": True}, idempotency_key="1")
        assert (plan["count"], plan["items"][0]["id"], plan["effects_undone"]) == (1, "order-0", {"charge": 1})
        asked["with"] = {"undo": False}
        _, plan = await ask("POST", "/v1/bulk", {**asked, "dry_run": True}, idempotency_key="1b")
        confirmed = {**asked, "dry_run": False, "confirm": plan["confirm"]}
        other, _ = await ask("POST", "/v1/bulk", {**confirmed, "uids": uids}, idempotency_key="2")
        assert other == 400, "the token belongs to the tasks that were shown"
        both, _ = await ask("POST", "/v1/bulk", {**asked, "filter": {"text": "order"}}, idempotency_key="3")
        assert both == 422
        job = await ended(ask, (await ask("POST", "/v1/bulk", confirmed, idempotency_key="4"))[1])
        assert job["result"]["done"] == 1
        assert [(await ask("GET", f"/v1/tasks/~{uid}"))[1]["status"] for uid in uids] == ["cancelled", "paused"]


async def test_a_confirmation_is_for_the_set_and_the_verb_that_were_shown(quick_url):
    asked: dict[str, Any] = {"filter": {"status": ["running"]}, "verb": "cancel"}
    async with serving(quick_url) as ask:
        for number in range(2):
            await ask("POST", "/v1/tasks", {"id": f"t{number}"}, idempotency_key=f"t{number}")
        _, plan = await ask("POST", "/v1/bulk", {**asked, "dry_run": True}, idempotency_key="1")
        confirmed = {**asked, "dry_run": False, "confirm": plan["confirm"]}
        status, problem = await ask("POST", "/v1/bulk", {**confirmed, "verb": "delete"}, idempotency_key="2")
        assert (status, problem["code"]) == (400, "bad_confirm")
        wider = {**confirmed, "filter": {"status": ["running", "paused"]}}
        assert (await ask("POST", "/v1/bulk", wider, idempotency_key="3"))[1]["code"] == "bad_confirm"
        for forged in ("", "x", "é", "AAAA" * 20):
            _, problem = await ask(
                "POST", "/v1/bulk", {**confirmed, "confirm": forged}, idempotency_key=f"4{len(forged)}"
            )
            assert problem["code"] == "bad_confirm"
        await ask("POST", "/v1/tasks/t0/complete", {})
        status, problem = await ask("POST", "/v1/bulk", confirmed, idempotency_key="5")
        assert (status, problem["code"]) == (409, "set_changed")
        assert (await ask("GET", "/v1/tasks/t1"))[1]["status"] == "running"


@pytest.mark.parametrize(
    "asked, status",
    [
        ({"filter": {}, "verb": "cancel"}, 422),
        ({"filter": {"status": ["running"]}, "verb": "explode"}, 422),
        ({"filter": {"statuss": ["running"]}, "verb": "cancel"}, 422),
        ({"filter": {"status": ["running"]}, "verb": "pause"}, 422),
        ({"filter": {"status": ["running"]}, "verb": "archive", "with": {"x": 1}}, 422),
        ({"filter": {"status": ["running"]}, "verb": "cancel", "dry_run": False}, 400),
    ],
)
async def test_a_bulk_that_does_not_fit_is_refused(quick_url, asked, status):
    async with serving(quick_url) as ask:
        assert (await ask("POST", "/v1/bulk", asked, idempotency_key="1"))[0] == status


async def test_a_job_is_seen_by_its_namespace_and_its_scope_only(quick_url):
    async with serving(quick_url) as ask:
        await ask("POST", "/v1/tasks", {"id": "t"}, idempotency_key="t")
        asked: dict[str, Any] = {"filter": {"status": ["running"]}, "verb": "pause", "with": {"message": "wait"}}
        _, plan = await ask("POST", "/v1/bulk", asked, idempotency_key="1")
        confirmed = {**asked, "dry_run": False, "confirm": plan["confirm"]}
        _, job = await ask("POST", "/v1/bulk", confirmed, idempotency_key="2")
        assert (await ended(ask, job))["state"] == "done"
        assert (await ask("DELETE", f"/v1/jobs/{job['id']}"))[1]["state"] == "done"
        for id in ("x", "~", job["id"][::-1]):
            assert (await ask("GET", f"/v1/jobs/{id}"))[0] == 404
        async with serving(quick_url, frozenset({"tasks:read"})) as stranger:
            assert (await stranger("GET", f"/v1/jobs/{job['id']}"))[0] == 403
        async with serving(quick_url, namespace="other") as stranger:
            assert (await stranger("GET", f"/v1/jobs/{job['id']}"))[0] == 404


async def test_kill_switches_are_set_listed_and_lifted(url):
    async with serving(url) as ask:
        status, switch = await ask("PUT", "/v1/switches/t", {"why": "costs"})
        assert (status, switch["id"], switch["why"], switch["by"]["user"]) == (200, "t", "costs", "ada")
        assert (await ask("PUT", "/v1/switch", {}))[1]["id"] is None
        assert [one["id"] for one in (await ask("GET", "/v1/switches"))[1]["items"]] in ([None, "t"], ["t", None])
        assert (await ask("DELETE", "/v1/switch"))[0] == 204
        assert (await ask("DELETE", "/v1/switches/t"))[0] == 204
        assert (await ask("GET", "/v1/switches"))[1]["items"] == []
        assert (await ask("PUT", "/v1/switch", {"why": "x" * 2000}))[0] == 422
        assert (await ask("PUT", "/v1/switches/%20", {}))[0] == 404
