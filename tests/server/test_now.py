"""Now: one answer for the first page, and lists and counts by situation."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from perdure import Perdure, durable, pause
from tests.support.asking import serving


@durable(name="now: waiting")
async def waiting() -> None:
    await pause.wait("1h")


@durable(name="now: nothing")
async def nothing() -> None: ...


async def fill(app: Perdure, marker: str = "Ship it?") -> None:
    async with app.worker():
        await app.run_until_paused("later", waiting)
    for n in range(3):
        await app.start(f"digest-{n}", nothing.options(queue="elsewhere"))
    asks = await app.tasks.open("asks", state={})
    await asks.pause(marker, reason="human_approval")
    works = await app.tasks.open("works", state={})
    await works.checkpoint({"n": 1})
    done = await app.tasks.open("done", state={})
    await done.complete(marker)
    failed = await app.tasks.open("failed", state={})
    await failed.fail({"type": "ValueError", "message": marker})


async def test_the_first_page_is_one_answer(url):
    async with Perdure(url) as app, serving(url) as ask:
        await fill(app)
        status, now = await ask("GET", "/v1/now")
        assert status == 200
        kinds = {kind: count for kind, count in now["counts"]["situation"].items() if count}
        assert kinds == {"completed": 1, "failed": 1, "you": 1, "stuck": 3, "waiting": 1, "working": 1}
        assert now["counts"]["total"] == 8 and now["counts"]["inbox"]["approval"] == 1
        assert [(one["task"], one["text"]) for one in now["inbox"]] == [("asks", "Ship it?")]
        (group,) = now["stuck"]
        assert (group["count"], group["cause"]) == (3, "code") and group["situation"]["kind"] == "stuck"
        assert [way["verb"] for way in group["ways"]] == ["worker", "cancel"]
        assert [one["id"] for one in now["working"]] == ["works"]
        assert [one["id"] for one in now["next"]] == ["later"] and now["next"][0]["situation"]["until"]
        assert {one["id"] for one in now["recent"]} == {"done", "failed"}
        assert set(now["health"]) == {"state", "say", "cli", "workers", "unattended"}
        after = datetime.fromisoformat(now["at"]) + timedelta(minutes=1)
        status, later = await ask("GET", "/v1/now", query=f"since={after:%Y-%m-%dT%H:%M:%SZ}")
        assert status == 200 and later["recent"] == []


async def test_without_a_worker_the_page_says_so(url):
    async with Perdure(url) as app, serving(url) as ask:
        assert (await ask("GET", "/v1/now"))[1]["health"]["state"] == "ok", "nothing would go on"
        await app.start("digest", nothing)
    async with serving(url) as ask:
        health = (await ask("GET", "/v1/now"))[1]["health"]
        assert (health["state"], health["unattended"], health["cli"]) == ("unattended", 1, "perdure worker module:app")
        assert health["say"] == "No worker is running, and no process works on a task."


@pytest.mark.threat("T3")
@pytest.mark.req("R58")
async def test_a_caller_without_data_read_sees_nothing_that_agents_wrote(url):
    async with Perdure(url) as app, serving(url, frozenset({"tasks:read"})) as viewer:
        await fill(app, "MARKER")
        for path in ("/v1/now", "/v1/tasks", "/v1/counts"):
            status, found = await viewer("GET", path)
            assert status == 200 and "MARKER" not in json.dumps(found)


async def test_tasks_are_listed_by_situation_page_by_page(url):
    async with Perdure(url) as app, serving(url) as ask:
        await fill(app)
        assert await ids(ask, "situation=stuck&limit=2") == ["digest-2", "digest-1", "digest-0"]
        assert await ids(ask, "situation=you") == ["asks"]
        assert await ids(ask, "situation=working&situation=waiting") == ["works", "later"]
        assert await ids(ask, "situation=failed&situation=stuck&limit=1") == [
            "failed",
            "digest-2",
            "digest-1",
            "digest-0",
        ]
        assert await ids(ask, "situation=stuck&status=paused") == []
        assert await ids(ask, "situation=stuck&sort=changed&limit=2") == ["digest-2", "digest-1", "digest-0"]
        status, problem = await ask("GET", "/v1/tasks", query="situation=odd")
        assert status in (400, 422) and "odd" in problem["detail"]


async def ids(ask: Any, query: str) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        more = f"&cursor={cursor}" if cursor else ""
        status, page = await ask("GET", "/v1/tasks", query=f"{query}{more}")
        assert status == 200, page
        found += [one["id"] for one in page["items"]]
        cursor = page["next"]
        if cursor is None:
            return found


async def test_counts_have_each_situation_and_open_question(url):
    async with Perdure(url) as app, serving(url) as ask:
        await fill(app)
        _, counts = await ask("GET", "/v1/counts", query="parts=situation")
        assert (counts["situation"]["stuck"], counts["situation"]["you"], counts["inbox"]["approval"]) == (3, 1, 1)
        _, filtered = await ask("GET", "/v1/counts", query="function=now: nothing".replace(" ", "%20"))
        assert filtered["total"] == 3 and "situation" not in filtered
        assert (await ask("GET", "/v1/counts", query="parts=situation&status=paused"))[0] == 422


async def test_a_question_is_answered_by_the_way_that_its_situation_gives(url):
    async with Perdure(url) as app, serving(url) as ask:
        await fill(app)
        _, found = await ask("GET", "/v1/tasks/asks/situation")
        approve, reject = found["ways"]
        assert (approve["verb"], approve["scope"], reject["verb"]) == ("approve", "inbox:decide", "reject")
        status, _ = await ask(approve["method"], approve["href"], {})
        assert status == 200
        assert (await ask("GET", "/v1/tasks/asks/situation"))[1]["kind"] == "idle"
