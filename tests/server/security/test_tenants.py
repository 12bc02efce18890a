"""Another namespace's things are not there, and what agents wrote is not shown to a key that may not read it."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from perdure import durable, effect, pause, step
from perdure.errors import PerdureError
from perdure.memory import DurableTaskState
from perdure.server import Server
from perdure.server.table import Route, routes
from tests.server import killing, recipes
from tests.support.http_server import make_key, request, serving

QUICK = {"rate": 1_000_000, "burst": 1_000_000}


def readable_routes() -> list[Route]:
    """GETs that end by themselves."""
    return [route for route in routes() if route.method == "GET" and not route.streams and route.path != "/link"]


def address_of(route: Route, task: str) -> str:
    """The route's address for a task; other parts name something that may be there."""
    parts = {"{task}": task, "{n}": "1", "{line}": "1", "{position}": "1"}
    return "/".join(parts.get(part, "x" if part.startswith("{") else part) for part in route.path.split("/"))


def query_of(route: Route) -> str:
    return {"wait": "timeout=0", "diff": "from=1&to=2"}.get(route.segments[-1], "")


def told(reply: Any) -> dict[str, Any]:
    return {**reply.json, "request_id": ""}


@pytest.mark.threat("T2")
async def test_what_belongs_to_another_namespace_is_answered_as_what_is_not_there(url):
    wrong = []
    async with serving(url, **QUICK) as server:
        task = await recipes.make_task(server)
        key = await make_key(server, "admin", namespace="other")
        for route in readable_routes():
            if "{task}" not in route.path:
                continue
            nowhere = await request(server, "GET", address_of(route, "nowhere"), query=query_of(route), key=key)
            for name in ("one", f"~{task.uid}"):
                reply = await request(server, "GET", address_of(route, name), query=query_of(route), key=key)
                if (reply.status, told(reply)) != (404, told(nowhere)):
                    wrong.append((route.name, name, reply.status))
    assert wrong == []


@pytest.mark.threat("T2")
@pytest.mark.parametrize("name", sorted(killing.RECIPES))
async def test_no_request_changes_anything_in_another_namespace(name):
    url = f"memory://{os.urandom(6).hex()}"
    async with killing.without_units_after(url), serving(url, **QUICK) as server:
        sent = await killing.RECIPES[name](server)
        if "cookie" in sent.headers:
            return  # a session is its own credential
        before = await killing.content(server)
        stranger = await make_key(server, "admin", namespace="other", name="stranger")
        await killing.send(server, name.partition(" ")[0], stranger, sent)
        after = await killing.content(server)
        for found in (before, after):
            del found["sealed with"]  # what the stranger makes in its own namespace is among it
            if name == "POST /v1/workers/drain":  # workers belong to the store, and store:admin is about all of it
                del found["wishes"]
            found["keys"] = [key for key in found["keys"] if key[0] in ("other", "holder", "switcher")]
        assert after == before


class Marks:
    """Texts that agents write, each found again wherever it is shown."""

    def __init__(self) -> None:
        self.where: dict[str, str] = {}

    def __call__(self, where: str) -> str:
        text = f"marker-{len(self.where):02d}-of-an-agent"
        self.where[text] = where
        return text

    def found_in(self, text: str) -> set[str]:
        return {where for mark, where in self.where.items() if mark in text}


@step
async def look_up(question: str, answer: str) -> str:
    return answer


@step
async def stumble(message: str) -> str:
    raise ValueError(message)


@effect
async def send_letter(text: str, receipt: str) -> str:
    return receipt


@durable(name="marked.asks")
async def asks(mark: dict[str, str]) -> str:
    await look_up(mark["argument"], mark["result"])
    with contextlib.suppress(ValueError):
        await stumble(mark["step error"])
    await send_letter(mark["effect argument"], mark["effect result"])
    await pause.approval(mark["first question"])
    await pause.approval(mark["second question"], editable={"note": mark["editable"]})
    return mark["never reached"]


@durable(name="marked.ends")
async def ends(result: str) -> str:
    return result


@durable(name="marked.fails")
async def fails(message: str) -> None:
    raise ValueError(message)


async def plant(server: Server, base: Path) -> Marks:
    """Tasks in which everything that an agent or a person can write holds a mark."""
    mark, app = Marks(), server.app_of("default")
    running = await app.tasks.create("running", state={"note": mark("first state"), "items": []})
    async with running.attempt():
        parts = {name: mark(name) for name in ("plan", "memory", "partial")}
        await running.checkpoint({"note": mark("state"), "items": []}, label=mark("label"), **parts)
        await running.append("items", mark("appended"))
        await running.mark_progress("reading", done=1, total=2, cursor=mark("cursor"))
    await running.signal("go", mark("signal"))
    await running.instruct(mark("instruction"))
    await running.frames.push(
        "review", goal=mark("goal"), done=[mark("done")], next=[mark("next")], because=mark("because")
    )
    async with app.memory("running", [DurableTaskState(base_dir=base)]) as memory:
        await memory.layer("task_state").write_artifact(mark("file name"), mark("file").encode())
    paused = await app.tasks.create("paused", state={})
    payload = {"question": mark("question"), "default": mark("default"), "extra": mark("detail")}
    await paused.pause(mark("message"), reason="human_input", payload=payload)
    answered = await app.tasks.create("answered", state={})
    await answered.pause(mark("answered question"), reason="human_input")
    await answered.answer(mark("answer"), by="ada")
    rejected = await app.tasks.create("rejected", state={})
    await rejected.pause(mark("rejected question"), reason="human_approval")
    await rejected.reject(by="ada", comment=mark("comment"))
    await (await app.tasks.create("done", state={})).complete({"note": mark("task result")})
    await (await app.tasks.create("failed", state={})).fail({"type": "ValueError", "message": mark("task error")})
    names = ("argument", "result", "step error", "effect argument", "effect result", "first question")
    names += ("second question", "editable", "never reached")
    written = {name: mark(f"durable {name}") for name in names}
    await app.run_until_paused("asks", asks, written)
    await (await app.tasks.handle("asks")).approve(by="ada", comment=mark("durable comment"))
    await app.run_until_paused("asks", asks, written)
    await app.run("ends", ends, mark("durable result"))
    with contextlib.suppress(PerdureError, ValueError):
        await app.run("fails", fails, mark("durable error"))
    sent = {"function": "report", "version": 1, "cron": "0 7 * * *", "tz": "UTC"}
    await recipes.by_socket(
        server, "POST", "/v1/schedules", {"id": "a", **sent, "arguments": {"note": mark("schedule argument")}}
    )
    await recipes.by_socket(
        server, "POST", "/v1/triggers", {"id": "a", "event": "ping", "task": "order-{n}", "signal": "paid"}
    )
    await recipes.by_socket(server, "POST", "/v1/events/ping", {"id": "e", "data": {"n": 1, "note": mark("event")}})
    return mark


async def addresses(server: Server, key: str) -> list[tuple[Route, str, str]]:
    """Every address of every route that is read, with what there is: route, path and query."""
    tasks = [
        item["id"] for item in (await request(server, "GET", "/v1/tasks", query="limit=200", key=key)).json["items"]
    ]
    pauses = [item["id"] for task in tasks for item in await _items(server, f"/v1/tasks/{task}/pauses", key)]
    pauses += [item["id"] for item in await _items(server, "/v1/inbox", key)]
    files = [item["sha256"] for item in await _items(server, "/v1/tasks/running/artifacts", key)]
    parts = {"{task}": tasks, "{pause}": sorted(set(pauses)), "{n}": ["1", "2"], "{line}": ["1", "2"],
             "{position}": [str(number) for number in range(1, 9)], "{sha256}": files, "{id}": ["a"]}  # fmt: skip
    found = []
    for route in [*readable_routes(), *(one for one in routes() if one.path.endswith("{sha256}"))]:
        choices = [parts.get(part, ["x"]) if part.startswith("{") else [part] for part in route.path.split("/")]
        found += [(route, "/".join(chosen), query_of(route)) for chosen in itertools.product(*choices)]
    return found


async def _items(server: Server, path: str, key: str) -> list[dict[str, Any]]:
    reply = await request(server, "GET", path, key=key)
    return list(reply.json["items"]) if reply.status == 200 else []


@pytest.mark.threat("T3")
async def test_a_key_without_data_read_is_shown_no_word_of_an_agent(quick_url, tmp_path):
    async with serving(quick_url, **QUICK) as server:
        mark = await plant(server, tmp_path)
        key, full = await make_key(server, "tasks:read"), await make_key(server, "admin")
        shown: set[tuple[str, str]] = set()
        seen: set[str] = set()
        for route, path, query in await addresses(server, full):
            told = (await request(server, "GET", path, query=query, key=key)).body.decode(errors="replace")
            shown |= {(route.name, where) for where in mark.found_in(told)}
            seen |= mark.found_in(
                (await request(server, "GET", path, query=query, key=full)).body.decode(errors="replace")
            )
    assert shown == set()
    assert len(mark.where) >= 40
    assert set(mark.where.values()) - seen == UNSEEN  # the others are there to be seen


# What no route that is read shows to anyone: texts that are read by code alone, or that came to nothing.
UNSEEN = {"instruction", "signal", "durable never reached", "first state", "schedule argument"}


@pytest.mark.threat("T2")
async def test_no_id_of_another_namespace_is_of_use_and_none_is_told_from_one_that_never_was(url):
    """Ids that are no task's: of questions, jobs, schedules, triggers, webhooks, deliveries, cursors and holders."""
    async with serving(url, **QUICK) as server, serving(f"memory://{os.urandom(6).hex()}", **QUICK) as elsewhere:
        known, never = [await _ids_in(one) for one in (server, elsewhere)]
        stranger = await make_key(server, "admin", namespace="other", name="stranger")
        wrong = []
        for route in readable_routes():
            names = [part for part in route.segments if part.startswith("{")]
            if not names or "{task}" in names:
                continue
            replies = [(ids, await request(server, "GET", _filled(route, ids), key=stranger)) for ids in (known, never)]
            answers = [(reply.status, _without(ids, str(told(reply)))) for ids, reply in replies]
            if answers[0] != answers[1] or answers[0][0] != 404:
                wrong.append((route.name, answers))
        assert wrong == []
        for path, query in (("/v1/tasks", "limit=1"), ("/v1/inbox", "limit=1"), ("/v1/tasks/one/events", "limit=1")):
            more = (await request(server, "GET", path, query=query, peer_uid=os.geteuid())).json["next"]
            assert more, path
            reply = await request(server, "GET", path, query=f"{query}&cursor={more}", key=stranger)
            assert reply.status in (400, 404), path
        await server.app_of("other").tasks.create("one", state={"n": 0, "items": []})
        for path in ("/v1/tasks/one/checkpoints", f"/v1/tasks/~{known['uid']}/checkpoints"):
            fenced = {"perdure-fence": known["fence"]}
            reply = await request(server, "POST", path, key=stranger, headers=fenced, body={"state": {"n": 9}})
            assert reply.status in (404, 409), (path, reply.body)
        for verb in ("beat", ""):
            path = f"/v1/holders/{known['holder']}/{verb}".rstrip("/")
            sent = {"key": stranger, "headers": {"perdure-holder": known["token"]}}
            await request(server, "POST" if verb else "DELETE", path, **sent)
        still = await request(
            server, "POST", "/v1/tasks/one/checkpoints", peer_uid=os.geteuid(),
            headers={"perdure-fence": known["fence"]}, body={"state": {"n": 5, "items": []}},
        )  # fmt: skip
        assert still.status == 201, still.body


def _without(ids: dict[str, str], text: str) -> str:
    """The text without the ids that its reader has sent."""
    for id in ids.values():
        text = text.replace(id, "")
    return text


def _filled(route: Route, ids: dict[str, str]) -> str:
    """The address with these ids; `{id}` is the schedule's or the trigger's."""
    noun = route.segments[1]
    return "/".join(ids.get(part) or ids[noun] if part.startswith("{") else part for part in route.path.split("/"))


async def _ids_in(server: Server) -> dict[str, str]:
    """Ids of what is not a task, in a store with one of each."""
    name = os.urandom(4).hex()
    task = await recipes.make_task(server)
    holder, token = await recipes._holder(server)
    key = await make_key(server, "admin", name="agent")
    begun = await request(server, "POST", "/v1/tasks/one/attempt", key=key, body={}, headers={"perdure-holder": token})
    for id in ("asks", "asks-too"):
        await (await server.app_of("default").tasks.create(id, state={})).pause("Good?", reason="human_approval")
    question = (await recipes.by_socket(server, "GET", "/v1/inbox")).json["items"][0]["id"]
    job = (await recipes.by_socket(server, "POST", "/v1/store/doctor")).json
    await recipes.job_done(server, job)
    daily = {"id": name, "function": "report", "version": 1, "cron": "0 7 * * *", "tz": "UTC"}
    await recipes.by_socket(server, "POST", "/v1/schedules", daily)
    await recipes.by_socket(server, "POST", "/v1/triggers", {"id": name, "event": "ping", "task": "t", "signal": "s"})
    made = await recipes.by_socket(server, "POST", "/v1/webhooks", recipes._HOOK)
    hook = made.json["webhook"]["id"]
    sent = (await recipes.by_socket(server, "POST", f"/v1/webhooks/{hook}/test")).json
    kept = await server.desk.keys.make("one more", ["viewer"])
    return {
        "{pause}": question, "{job}": job["id"],
        "schedules": name, "triggers": name, "{hook}": hook, "{key}": kept.key.id,
        "{delivery}": sent["id"], "uid": task.uid, "fence": begun.json["fence"], "holder": holder, "token": token,
    }  # fmt: skip


@pytest.mark.threat("T28")
async def test_a_server_that_only_reads_refuses_every_change_whatever_the_key(quick_url):
    async with serving(quick_url, read_only=True, **QUICK) as server:
        key = await make_key(server, "admin")
        open_anyway = {"POST /csp", "POST /v1/session"}
        for route in routes():
            if not route.writes or route.name in open_anyway:
                continue
            for how in ({"key": key}, {"peer_uid": os.geteuid()}):
                reply = await request(server, route.method, address_of(route, "one"), **how)
                assert reply.status == 403, route.name
                assert reply.code == "read_only" or route.who == "session", route.name
