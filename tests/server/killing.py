"""Requests to every route that changes something, and a server that is killed while it carries one out.

A recipe prepares a store and says what to send. The server that gets the request is a process of its own and is killed
at a named place; another one gets the same request with the same key. What is in the store then has to be what one
request leaves there.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from perdure._ground import crash_points
from perdure.server import Server
from perdure.server.table import Route, routes
from tests.support.http_server import Reply, make_key, make_session, request, serving
from tests.support.processes import ChildDied, Nursery

# Where a server is killed: the place, and the how many-th time it is passed.
POINTS = [
    ("server.admitted", 1),  # nothing is written yet
    ("server.marked", 1),  # the key is in use
    ("{engine}.before_commit", 2),  # the handler's write is on its way
    ("{engine}.before_commit", 3),  # the first one is done, another is on its way
    ("server.carried_out", 1),  # all is written, the answer is not kept
    ("server.kept", 1),  # the answer is kept
    ("server.answering", 1),  # its head is sent
]
# Kinds of events that tell of processes, not of what was asked for: a process that is killed leaves more of them.
NOISE = ("attempt", "lease", "taken", "begun", "released")


@dataclass(frozen=True)
class Sent:
    """A request without its credential."""

    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


Recipe = Callable[[Server], Awaitable[Sent]]
RECIPES: dict[str, Recipe] = {}


def recipe(name: str) -> Callable[[Recipe], Recipe]:
    """Register what to send to a route."""

    def keep(function: Recipe) -> Recipe:
        RECIPES[name] = function
        return function

    return keep


def on_a_task(method: str, verb: str, body: Any = None, *, is_done: bool = False, is_paused: bool = False) -> None:
    """Register a request about a task with two checkpoints."""

    async def prepare(server: Server) -> Sent:
        task = await make_task(server)
        if is_paused:
            await task.pause("Go on?")
        if is_done:
            await task.complete({"n": 2})
        version = (await task.record()).version
        return Sent(f"/v1/tasks/one{verb}", body, {"if-match": f'"v{version}"'})

    RECIPES[f"{method} /v1/tasks/{{task}}{verb}"] = prepare


async def make_task(server: Server) -> Any:
    task = await server.app_of("default").tasks.create("one", state={"n": 0, "items": []})
    async with task.attempt():
        for number in (1, 2):
            await task.checkpoint({"n": number, "items": []}, label=f"c{number}")
    return task


on_a_task("POST", "/pause", {"message": "Go on?"})
on_a_task("POST", "/resume", {"instruction": None}, is_paused=True)
on_a_task("POST", "/cancel", {})
on_a_task("POST", "/rollback", {"to": "1"})
on_a_task("POST", "/fork", {})
on_a_task("POST", "/signal", {"name": "go", "value": 1})
on_a_task("POST", "/instruct", {"text": "faster"})
on_a_task("POST", "/take")
on_a_task("POST", "/archive", is_done=True)
on_a_task("DELETE", "", is_done=True)
on_a_task("POST", "/checkpoints", {"state": {"n": 3, "items": []}, "label": "c3"})
on_a_task("POST", "/append", {"path": "items", "item": 7})
on_a_task("PUT", "/progress", {"operation": "reading", "done": 3, "total": 9})
on_a_task("POST", "/complete", {"result": {"n": 3}})
on_a_task("POST", "/fail", {"error": {"type": "ValueError", "message": "no"}})
on_a_task("POST", "/invalidate", {"numbers": [1]})


for _name in ("PUT /v1/switches/{task}", "DELETE /v1/switches/{task}", "PUT /v1/switch", "DELETE /v1/switch"):

    @recipe(_name)
    async def _(server: Server, name: str = _name) -> Sent:
        await make_task(server)
        path = name.partition(" ")[2].replace("{task}", "one")
        body = {"why": "a fault was found"}
        if name.startswith("DELETE"):
            key = await make_key(server, "admin", name="switcher")
            await request(server, "PUT", path, key=key, body=body)
            return Sent(path)
        return Sent(path, body)


@recipe("POST /v1/tasks")
async def _(_: Server) -> Sent:
    return Sent("/v1/tasks", {"id": "new", "state": {"n": 1}})


@recipe("PUT /v1/tasks/{task}/checkpoints/{n}/pin")
async def _(server: Server) -> Sent:
    await make_task(server)
    return Sent("/v1/tasks/one/checkpoints/1/pin")


@recipe("DELETE /v1/tasks/{task}/checkpoints/{n}/pin")
async def _(server: Server) -> Sent:
    await (await make_task(server)).pin("1")
    return Sent("/v1/tasks/one/checkpoints/1/pin")


@recipe("POST /v1/api-keys")
async def _(_: Server) -> Sent:
    return Sent("/v1/api-keys", {"name": "made", "scopes": ["viewer"]})


async def _other_key(server: Server) -> tuple[str, dict[str, str]]:
    made = await server.desk.keys.make("other", ["viewer", "tasks:write"])
    return f"/v1/api-keys/{made.key.id}", {"if-match": '"v1"'}


@recipe("PATCH /v1/api-keys/{key}")
async def _(server: Server) -> Sent:
    path, match = await _other_key(server)
    return Sent(path, {"name": "renamed", "scopes": ["viewer"]}, match)


@recipe("DELETE /v1/api-keys/{key}")
async def _(server: Server) -> Sent:
    path, match = await _other_key(server)
    return Sent(path, None, match)


@recipe("POST /v1/api-keys/{key}/rotate")
async def _(server: Server) -> Sent:
    path, _ = await _other_key(server)
    return Sent(f"{path}/rotate", {})


def on_a_question(verb: str, reason: str, body: Any) -> None:
    """Register a request about a question of a task."""

    async def prepare(server: Server) -> Sent:
        await (await make_task(server)).pause("Good?", reason=reason)
        open_ones = (await request(server, "GET", "/v1/inbox", peer_uid=os.geteuid())).json["items"]
        return Sent(f"/v1/inbox/{open_ones[0]['id']}/{verb}", body)

    RECIPES[f"POST /v1/inbox/{{pause}}/{verb}"] = prepare


on_a_question("approve", "human_approval", {"comment": "yes"})
on_a_question("reject", "human_approval", {"comment": "no"})
on_a_question("answer", "human_input", {"value": 3})
on_a_question("snooze", "human_input", {"until": "2100-01-01T00:00:00Z"})


_DAILY = {"function": "report", "version": 1, "cron": "0 7 * * *", "tz": "UTC"}
_PING = {"event": "ping", "task": "order-{n}", "signal": "paid"}


def on_automation(noun: str, body: dict[str, Any], method: str, verb: str, sent: Any = None) -> None:
    """Register a request about a schedule or a trigger that is there."""

    async def prepare(server: Server) -> Sent:
        made = await request(server, "POST", f"/v1/{noun}", peer_uid=os.geteuid(), body={"id": "a", **body})
        assert made.status == 201, made.body
        return Sent(f"/v1/{noun}/a{verb}", sent, {"if-match": made.headers["etag"]} if not verb else {})

    RECIPES[f"{method} /v1/{noun}/{{id}}{verb}"] = prepare


for _noun, _body, _changed in (("schedules", _DAILY, {"cron": "0 8 * * *"}), ("triggers", _PING, {"signal": "late"})):
    on_automation(
        _noun, _body, "PUT", "", {**_body, **({"signal": "late"} if _noun == "triggers" else {"cron": "0 8 * * *"})}
    )
    on_automation(_noun, _body, "DELETE", "")
    on_automation(_noun, _body, "POST", "/pause")
    on_automation(_noun, _body, "POST", "/resume")

    @recipe(f"POST /v1/{_noun}")
    async def _(_: Server, noun: str = _noun, body: dict[str, Any] = _body) -> Sent:
        return Sent(f"/v1/{noun}", {"id": "a", **body})


on_automation("schedules", _DAILY, "POST", "/run")


@recipe("POST /v1/events/{name}")
async def _(server: Server) -> Sent:
    await request(server, "POST", "/v1/triggers", peer_uid=os.geteuid(), body={"id": "a", **_PING})
    return Sent("/v1/events/ping", {"data": {"n": 1}})


_HOOK = {"url": "https://93.184.215.14/in", "events": ["task.paused"]}


@recipe("POST /v1/webhooks")
async def _(_: Server) -> Sent:
    return Sent("/v1/webhooks", _HOOK)


for _name, _sent in {
    "PATCH /v1/webhooks/{hook}": {"description": "changed"},
    "DELETE /v1/webhooks/{hook}": None,
    "POST /v1/webhooks/{hook}/rotate": {},
}.items():

    @recipe(_name)
    async def _(server: Server, name: str = _name, sent: Any = _sent) -> Sent:
        headers = {"idempotency-key": "making"}
        made = await request(server, "POST", "/v1/webhooks", peer_uid=os.geteuid(), body=_HOOK, headers=headers)
        assert made.status == 201, made.body
        path = name.partition(" ")[2].replace("{hook}", made.json["webhook"]["id"])
        return Sent(path, sent, {} if name.endswith("rotate") else {"if-match": made.headers["etag"]})


@recipe("POST /v1/holders")
async def _(_: Server) -> Sent:
    return Sent("/v1/holders", {"host": "elsewhere", "pid": 7})


async def _holder(server: Server) -> tuple[str, str]:
    sent = {"host": "elsewhere", "pid": 7}
    key = await make_key(server, "admin", name="holder")
    made = (await request(server, "POST", "/v1/holders", key=key, body=sent)).json
    return made["holder"], made["token"]


@recipe("POST /v1/holders/{holder}/beat")
async def _(server: Server) -> Sent:
    holder, token = await _holder(server)
    return Sent(f"/v1/holders/{holder}/beat", None, {"perdure-holder": token})


@recipe("DELETE /v1/holders/{holder}")
async def _(server: Server) -> Sent:
    holder, token = await _holder(server)
    return Sent(f"/v1/holders/{holder}", None, {"perdure-holder": token})


@recipe("POST /v1/tasks/{task}/attempt")
async def _(server: Server) -> Sent:
    await make_task(server)
    _, token = await _holder(server)
    return Sent("/v1/tasks/one/attempt", {}, {"perdure-holder": token})


@recipe("DELETE /v1/tasks/{task}/attempt")
async def _(server: Server) -> Sent:
    await make_task(server)
    _, token = await _holder(server)
    key = await make_key(server, "admin", name="holder")
    headers = {"perdure-holder": token}
    begun = await request(server, "POST", "/v1/tasks/one/attempt", key=key, body={}, headers=headers)
    return Sent("/v1/tasks/one/attempt", None, {"perdure-fence": begun.json["fence"]})


@recipe("POST /v1/session/namespace")
async def _(server: Server) -> Sent:
    return Sent("/v1/session/namespace", {"namespace": "other"}, await _session(server))


@recipe("DELETE /v1/session")
async def _(server: Server) -> Sent:
    return Sent("/v1/session", None, await _session(server))


async def _session(server: Server) -> dict[str, str]:
    cookie = await make_session(server, "admin", is_local=True)
    return {"cookie": cookie, "origin": "http://127.0.0.1:7420", "perdure-client": "dashboard/test"}


# Routes without a recipe, and why no kill between write and answer can double what they do.
HARMLESS = {
    "POST /v1/webhooks/{hook}/test": "a ping tells its receiver nothing",
    "POST /v1/webhooks/{hook}/enable": "a webhook that is enabled twice is enabled",
    "POST /v1/webhooks/{hook}/deliveries/{delivery}/replay": "its receiver knows the message by its id",
    "POST /v1/workers/drain": "a worker that is told twice to leave leaves once",
    "POST /v1/store/gc": "what is removed is removed once",
    "POST /v1/store/doctor": "it only looks",
    "POST /v1/store/reseal": "a record that is sealed anew is left alone the next time",
    "POST /v1/audit/verify": "it only looks",
    "POST /v1/keeper/restart": "a keeper that is restarted twice keeps its units",
    "POST /v1/keeper/stop": "a keeper that is stopped twice has stopped",
    "POST /v1/tasks/{task}/export": "it makes a file; a task that has moved is not moved again",
    "POST /v1/import": "a task that is there is not imported again",
    "POST /v1/cron": "it only reckons",
    "POST /v1/inbox/{pause}/settle": "the first decision counts, and another one is refused",
    "POST /v1/tasks/{task}/pauses/{pause}/token": "a token that nobody was told answers nothing",
    "DELETE /v1/tasks/{task}/frames/{name}": "a frame that is dropped twice is gone once",
    "DELETE /v1/jobs/{job}": "a job that is stopped twice is stopped once",
    "POST /v1/bulk": "its job does to each task what the task's own route does, where that is lawful",
    "PUT /v1/tasks/{task}/units/{unit}/writer": "the same caller is the writer after one request and after two",
    "DELETE /v1/tasks/{task}/units/{unit}/writer": "a right that is given back twice is given back",
    "POST /v1/tasks/{task}/units/{unit}/input": "the keeper types each Perdure-Input-Id once",
    "POST /v1/tasks/{task}/units/{unit}/answer": "it is typed only while the program asks for it",
    "PUT /v1/tasks/{task}/units/{unit}/size": "a window that is set to a size twice has that size",
    "POST /v1/tasks/{task}/units/{unit}/signal": "no key can tell whether a process has got a signal; it is sent again",
    "DELETE /v1/tasks/{task}/units/{unit}": "a unit that is ended twice has ended",
}


def routes_that_write() -> list[Route]:
    """The routes that a key can be sent to."""
    return [route for route in routes() if route.takes_a_key and route.name not in HARMLESS]


def pairs() -> list[tuple[str, tuple[str, int]]]:
    """Every route that has a recipe, with every place to be killed at."""
    known = [route.name for route in routes_that_write() if route.name in RECIPES]
    return list(itertools.product(known, POINTS))


# ── killing ──────────────────────────────────────────────────────────────────────────────────────


async def send(server: Server, method: str, key: str, sent: Sent) -> Reply:
    headers = {**sent.headers, "idempotency-key": "the one"}
    credential = None if "cookie" in headers else key
    return await request(server, method, sent.path, key=credential, body=sent.body, headers=headers)


async def killed_while_sending(_: Any, url: str, method: str, key: str, sent: Sent, place: str, count: int) -> int:
    """Run in a process of its own: ends by SIGKILL at the place; returns the status when it was never passed."""
    async with serving(url) as server:
        crash_points.arm(place, count)
        return (await send(server, method, key, sent)).status


async def prepare(url: str, name: str) -> tuple[str, Sent]:
    """A store in which the request of a recipe can be sent, a key for it, and the request."""
    async with serving(url) as server:
        return await make_key(server, "admin"), await RECIPES[name](server)


async def repeat(url: str, method: str, key: str, sent: Sent) -> tuple[Reply, dict[str, Any]]:
    """Send the request to a server that lives. Returns its answer, and what is in the store then."""
    async with serving(url) as server:
        reply = await send(server, method, key, sent)
        return reply, await content(server)


async def content(server: Server) -> dict[str, Any]:
    """What requests have left in the store, without ids, moments and processes."""
    app = server.app_of("default")
    found: dict[str, Any] = {}
    for record in await app.tasks.list(limit=100):
        task = await app.tasks.handle_by_uid(record.uid)
        events = [event.kind for event in await app.tasks.events(record.id) if not event.kind.startswith(NOISE)]
        made = [(c.label, c.pinned if hasattr(c, "pinned") else None) async for c in task.checkpoints()]
        found.setdefault(record.id.partition("@")[0], []).append((
            record.status, record.state, record.result, record.error, record.pause and record.pause.message,
            record.archived_at is not None, events, made,
        ))  # fmt: skip
    keys = [kept.value for kept in await server.desk.keys.all()]
    for noun in ("switches", "schedules", "triggers", "events", "webhooks"):
        found[noun] = len((await request(server, "GET", f"/v1/{noun}", peer_uid=os.geteuid())).json["items"])
    found["keys"] = sorted((key.name, key.scopes, key.revoked_at is not None, bool(key.former)) for key in keys)
    return found


async def once_though_killed(name: str, point: tuple[str, int], url: str, children: Nursery) -> Reply:
    """Kill a server at a point of a request, repeat the request, and compare the store with one that saw it once.

    Returns the answer of the repeated request.
    """
    method = name.partition(" ")[0]
    place = point[0].format(engine="postgres" if url.startswith("postgres") else "sqlite")
    once = f"memory://once-{os.urandom(6).hex()}"
    usual, expected = await repeat(once, method, *await prepare(once, name))
    assert usual.status < 300, f"{name}: {usual.status} {usual.body!r}"
    key, sent = await prepare(url, name)
    child = children.start(killed_while_sending, url, method, key, sent, place, point[1])
    with suppress(ChildDied):
        child.heard()
    reply, found = await repeat(url, method, key, sent)
    assert found == expected, f"{name} killed at {place}, repeated: {reply.status} {reply.body!r}"
    return reply
