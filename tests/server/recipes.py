"""A request to every route that changes something: how the store is prepared, and what is sent.

killing.py kills servers while they carry these out.
"""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from perdure import durable, effect, pause
from perdure._runtime import UnitAccess
from perdure._store import Write
from perdure._tasks import store_of
from perdure.server import Caller, Server
from perdure.server.shapes.live import writer_label
from tests.support.http_server import Reply, make_key, make_session, request, serving


@dataclass(frozen=True)
class Sent:
    """A request without its credential."""

    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""
    env: dict[str, str] = field(default_factory=dict)  # of the server that gets it


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


for _name, _body in (
    ("DELETE /v1/tasks/{task}/attempt", None),
    ("POST /v1/tasks/{task}/attempt/error", {"type": "ValueError", "message": "no"}),
    ("POST /v1/tasks/{task}/attempt/pause", {"message": "Go on?", "checkpoint": {"n": 4, "items": []}}),
):

    @recipe(_name)
    async def _(server: Server, path: str = _name.partition(" ")[2], body: Any = _body) -> Sent:
        await make_task(server)
        _, token = await _holder(server)
        key = await make_key(server, "admin", name="holder")
        headers = {"perdure-holder": token}
        begun = await request(server, "POST", "/v1/tasks/one/attempt", key=key, body={}, headers=headers)
        return Sent(path.replace("{task}", "one"), body, {"perdure-fence": begun.json["fence"]})


@recipe("POST /v1/tasks/{task}/token")
async def _(server: Server) -> Sent:
    await make_task(server)
    return Sent("/v1/tasks/one/token")


@recipe("POST /v1/session/namespace")
async def _(server: Server) -> Sent:
    return Sent("/v1/session/namespace", {"namespace": "other"}, await _session(server))


@recipe("DELETE /v1/session")
async def _(server: Server) -> Sent:
    return Sent("/v1/session", None, await _session(server))


async def _session(server: Server) -> dict[str, str]:
    cookie = await make_session(server, "admin", is_local=True)
    return {"cookie": cookie, "origin": "http://127.0.0.1:7420", "perdure-client": "dashboard/test"}


async def by_socket(server: Server, method: str, path: str, body: Any = None, **headers: str) -> Reply:
    """A request of somebody who may do everything, with a key of its own."""
    sent = {"idempotency-key": f"preparing {path}", **headers}
    return await request(server, method, path, peer_uid=os.geteuid(), body=body, headers=sent)


for _name in ("test", "enable", "deliveries/{delivery}/replay"):

    @recipe(f"POST /v1/webhooks/{{hook}}/{_name}")
    async def _(server: Server, name: str = _name) -> Sent:
        made = await by_socket(server, "POST", "/v1/webhooks", _HOOK)
        path = f"/v1/webhooks/{made.json['webhook']['id']}"
        if name == "enable":
            await by_socket(server, "PATCH", path, {"enabled": False}, **{"if-match": made.headers["etag"]})
        if "delivery" in name:
            sent = (await by_socket(server, "POST", f"{path}/test")).json
            name = name.replace("{delivery}", sent["id"])
        return Sent(f"{path}/{name}")


_PLAIN_POSTS: dict[str, Any] = {
    "/v1/store/gc": {"dry_run": False},
    "/v1/store/doctor": None,
    "/v1/audit/verify": {},
    "/v1/cron": {"cron": "0 7 * * *", "tz": "UTC"},
    "/v1/keeper/restart": None,
    "/v1/keeper/stop": None,
}
for _name, _sent in _PLAIN_POSTS.items():

    @recipe(f"POST {_name}")
    async def _(server: Server, path: str = _name, sent: Any = _sent) -> Sent:
        await make_task(server)
        return Sent(path, sent)


@recipe("DELETE /v1/jobs/{job}")
async def _(server: Server) -> Sent:
    job = (await by_socket(server, "POST", "/v1/store/doctor")).json
    await job_done(server, job)
    return Sent(f"/v1/jobs/{job['id']}")


@recipe("POST /v1/bulk")
async def _(server: Server) -> Sent:
    await make_task(server)
    asked = {"verb": "pause", "filter": {"text": "one"}, "with": {"message": "hold on"}}
    plan = (await by_socket(server, "POST", "/v1/bulk", {**asked, "dry_run": True})).json
    return Sent("/v1/bulk", {**asked, "dry_run": False, "confirm": plan["confirm"]})


@recipe("DELETE /v1/tasks/{task}/frames/{name}")
async def _(server: Server) -> Sent:
    await (await make_task(server)).frames.push("review", goal="look at it", next=["read"])
    return Sent("/v1/tasks/one/frames/review")


@recipe("POST /v1/tasks/{task}/export")
async def _(server: Server) -> Sent:
    await make_task(server)
    return Sent("/v1/tasks/one/export", {})


@recipe("POST /v1/import")
async def _(_: Server) -> Sent:
    async with serving(f"memory://bundle-{os.urandom(6).hex()}") as other:
        await make_task(other)
        bundle = (await by_socket(other, "POST", "/v1/tasks/one/export", {})).body
    return Sent("/v1/import", bundle, {"content-type": "application/octet-stream"}, "unsigned=true")


@effect
async def charge(note: str) -> str:
    raise ConnectionError(note)


@durable
async def pay(note: str) -> str:
    return await charge(note)


@durable
async def call_back() -> Any:
    async def announce(token: str) -> None:
        pass

    return await pause.callback("the build", dict[str, int], announce=announce)


@recipe("POST /v1/inbox/{pause}/settle")
async def _(server: Server) -> Sent:
    await server.app_of("default").run_until_paused("paying", pay, "x")
    (asked,) = (await by_socket(server, "GET", "/v1/inbox")).json["items"]
    return Sent(f"/v1/inbox/{asked['id']}/settle", {"choice": "done", "value": "receipt"})


@recipe("POST /v1/tasks/{task}/pauses/{pause}/token")
async def _(server: Server) -> Sent:
    await server.app_of("default").run_until_paused("building", call_back)
    (waits,) = (await by_socket(server, "GET", "/v1/tasks/building/pauses")).json["items"]
    return Sent(f"/v1/tasks/building/pauses/{waits['id']}/token")


async def job_done(server: Server, job: dict[str, Any]) -> None:
    if (running := server.desk.jobs._running.get(job["id"])) is not None:  # else its server is dead
        await running[1]


# ── units, workers and sealed stores ─────────────────────────────────────────────────────────────

# Tells of each line that is typed and of each signal, so that whatever arrives twice can be counted.
_TELLS = """
import os, signal, sys, termios
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"got a signal\\n"))
if "secret" in sys.argv:
    mode = termios.tcgetattr(0)
    mode[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, mode)
os.write(1, b"ready\\n")
for line in sys.stdin.buffer:
    os.write(1, b"got " + line)
"""
_OCTETS = {"content-type": "application/octet-stream"}


async def make_unit(server: Server, *arguments: str) -> UnitAccess:
    """A unit that has begun, of a task with two checkpoints."""
    await make_task(server)
    app = server.app_of("default")
    await (await app.runtime("one")).shell("main", [sys.executable, "-S", "-E", "-u", "-c", _TELLS, *arguments])
    unit = await app.units.get("one", "main")
    await until_told(unit, b"ready")
    return unit


async def until_told(unit: UnitAccess, text: bytes) -> bytes:
    """All output, once this is in it."""
    seen = b""
    while text not in seen:
        seen += (await unit.output(len(seen), wait="10s")).data
    return seen


def on_a_unit(method: str, verb: str, body: Any = None, *arguments: str, is_typing: bool = True) -> None:
    """Register a request about a unit. With `is_typing` its sender has the right to type."""

    async def prepare(server: Server) -> Sent:
        unit = await make_unit(server, *arguments)
        sender = next((key.value for key in await server.desk.keys.all() if key.value.name == "test"), None)
        if is_typing and sender is not None:
            await unit.take(writer_label(Caller("default", frozenset(), sender.name, "key", sender.id)))
        headers = _OCTETS if isinstance(body, bytes) else {}
        return Sent(f"/v1/tasks/one/units/main{verb}", body, headers)

    RECIPES[f"{method} /v1/tasks/{{task}}/units/{{unit}}{verb}"] = prepare


on_a_unit("PUT", "/writer", {}, is_typing=False)
on_a_unit("DELETE", "/writer")
on_a_unit("POST", "/input", b"a line\n")
on_a_unit("POST", "/answer", b"a secret\n", "secret")
on_a_unit("PUT", "/size", {"rows": 33, "columns": 77})
on_a_unit("POST", "/signal", {"signal": "INT"})
on_a_unit("DELETE", "", is_typing=False)


@recipe("POST /v1/workers/drain")
async def _(server: Server) -> Sent:
    holder, _ = await _holder(server)
    store = store_of(server.app_of("default").tasks)
    await Write(store.committer, "announce", {"worker": holder, "knows": "{}"}, key=f"worker {holder}")
    return Sent("/v1/workers/drain", {"workers": [holder]})


@recipe("POST /v1/store/reseal")
async def _(server: Server) -> Sent:
    await make_task(server)
    return Sent("/v1/store/reseal", env={"PERDURE_KEY": f"k1:{b64encode(bytes(32)).decode()}"})


# Repeats that cannot have the first answer, by the code of the one they get, and why.
OTHER_ANSWERS = {
    "DELETE /v1/session": ("session_over", "the request has ended the credential that would repeat it"),
    "POST /v1/import": ("answered_before", "no GET shows what an import has brought"),
}
