"""Requests to every route that changes something, and a server that is killed while it carries one out.

A recipe (recipes.py) prepares a store and says what to send. The server that gets the request is a process of its own
and is killed at a named place; another one gets the same request with the same key. What is in the store then has to be
what one request leaves there, and the answer has to be the one of a request that was not cut off.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest

from perdure import Perdure
from perdure._ground import crash_points
from perdure._ground.config import find_address
from perdure._runtime import UnitRecord
from perdure._runtime.keeper_client import client, keeper_place
from perdure._tasks import keys_in_use, store_of
from perdure.errors import PerdureError
from perdure.server import Server
from perdure.server.table import Route, routes
from tests.server.recipes import OTHER_ANSWERS, RECIPES, Sent, by_socket, job_done, until_told
from tests.support.http_server import Reply, make_key, request, serving
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


def routes_that_write() -> list[Route]:
    """The routes that a key can be sent to."""
    return [route for route in routes() if route.takes_a_key]


def pairs() -> list[tuple[str, tuple[str, int]]]:
    """Every route that has a recipe, with every place to be killed at."""
    known = [route.name for route in routes_that_write() if route.name in RECIPES]
    return list(itertools.product(known, POINTS))


# ── killing ──────────────────────────────────────────────────────────────────────────────────────


async def send(server: Server, method: str, key: str, sent: Sent) -> Reply:
    headers = {**sent.headers, "idempotency-key": "the one"}
    credential = None if "cookie" in headers else key
    return await request(server, method, sent.path, key=credential, body=sent.body, headers=headers, query=sent.query)


async def send_and_wait(server: Server, method: str, key: str, sent: Sent) -> Reply:
    """The same, and the end of the job that it began."""
    reply = await send(server, method, key, sent)
    if reply.status == 202 and reply.body and "state" in reply.json and "verb" in reply.json:
        await job_done(server, reply.json)
    return reply


async def killed_while_sending(_: Any, url: str, method: str, key: str, sent: Sent, place: str, count: int) -> int:
    """Run in a process of its own: ends by SIGKILL at the place; returns the status when it was never passed."""
    os.environ.update(sent.env)
    async with serving(url) as server:
        crash_points.arm(place, count)
        return (await send(server, method, key, sent)).status


async def prepare(url: str, name: str) -> tuple[str, Sent]:
    """A store in which the request of a recipe can be sent, a key for it, and the request."""
    async with serving(url) as server:
        return await make_key(server, "admin"), await RECIPES[name](server)


async def repeat(url: str, method: str, key: str, sent: Sent) -> tuple[Reply, dict[str, Any]]:
    """Send the request to a server that lives. Returns its answer, and what is in the store then."""
    with surrounded_by(sent.env):
        async with serving(url) as server:
            return await send_and_wait(server, method, key, sent), await content(server)


@contextmanager
def surrounded_by(env: Mapping[str, str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        yield


@asynccontextmanager
async def without_units_after(*urls: str) -> AsyncIterator[None]:
    """The keepers of these stores end with the block, and all that they hold."""
    try:
        yield
    finally:
        for url in urls:
            here = client.find(keeper_place.home_of(find_address(url)))
            if here is not None:
                with suppress(PerdureError):
                    await here.ask("stop", units_too=True)
                here.close()


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
    hooks = (await by_socket(server, "GET", "/v1/webhooks")).json["items"]
    for hook in hooks:
        sent = (await by_socket(server, "GET", f"/v1/webhooks/{hook['id']}/deliveries")).json["items"]
        found.setdefault("sent", []).append((hook["enabled"], [one["event"] for one in sent]))
    for noun in ("switches", "schedules", "triggers", "events", "webhooks"):
        found[noun] = len((await request(server, "GET", f"/v1/{noun}", peer_uid=os.geteuid())).json["items"])
    found["units"] = [await _seen_of(unit, app) for unit in (await app.units.page()).items]
    found["wishes"] = sorted(worker.wish for worker in await app.workers.list() if worker.wish)
    found["sealed with"] = sorted(await keys_in_use(store_of(app.tasks)))
    found["keys"] = sorted((key.name, key.scopes, key.revoked_at is not None, bool(key.former)) for key in keys)
    return found


async def _seen_of(unit: UnitRecord, app: Perdure) -> tuple[Any, ...]:
    """What is to be seen of a unit. A last line is typed: what it told before that is complete then."""
    told: list[bytes] = []
    if unit.is_alive:
        there, last = await app.units.get(unit.task, unit.name), f"last {os.urandom(6).hex()}"
        await there.take("a looker", force=True)
        await there.send(last.replace(" ", "-"), f"{last}\n".encode(), writer="a looker")
        lines = (await until_told(there, f"got {last}".encode())).splitlines()
        told = [line for line in lines if line.startswith(b"got") and b"last" not in line]
        await there.take(unit.writer or "a looker", force=True)
        if not unit.writer:
            await there.release("a looker")
    return unit.name, unit.is_alive, bool(unit.writer), unit.rows, unit.columns, told


async def once_though_killed(name: str, point: tuple[str, int], url: str, children: Nursery) -> Reply:
    """Kill a server at a point of a request, repeat the request, and compare the store with one that saw it once.

    Returns the answer of the repeated request.
    """
    method = name.partition(" ")[0]
    place = point[0].format(engine="postgres" if url.startswith("postgres") else "sqlite")
    once = f"memory://once-{os.urandom(6).hex()}"
    async with without_units_after(once, url):
        return await _compared(name, method, place, point[1], once, url, children)


async def _compared(name: str, method: str, place: str, count: int, once: str, url: str, children: Nursery) -> Reply:
    usual, expected = await repeat(once, method, *await prepare(once, name))
    assert usual.status < 300, f"{name}: {usual.status} {usual.body!r}"
    key, sent = await prepare(url, name)
    child = children.start(killed_while_sending, url, method, key, sent, place, count)
    with suppress(ChildDied):
        child.heard()
    reply, found = await repeat(url, method, key, sent)
    told = f"{name} killed at {place}, repeated: {reply.status} {reply.body!r}"
    assert found == expected, told
    assert is_same_answer(name, reply, usual), told
    return reply


def is_same_answer(name: str, reply: Reply, usual: Reply) -> bool:
    if (usual.status, reply.status) == (202, 200) and name.startswith("POST /v1/events/"):
        return True  # the event was known before, and that is what it is told
    if reply.status == usual.status:
        return bool(_comparable(reply) == _comparable(usual))
    if name in OTHER_ANSWERS and reply.status >= 400:
        return reply.code == OTHER_ANSWERS[name][0]
    if reply.status == 409 and reply.code == "answered_before":
        return b'"secret"' in usual.body or b'"token"' in usual.body or b'"key"' in usual.body  # it is shown once
    return False


def _comparable(reply: Reply) -> Any:
    """What an answer tells; of a bundle, that it is one."""
    return _plain(reply.json) if "json" in reply.headers.get("content-type", "") else bool(reply.body)


# What an answer tells, beside ids, moments, secrets, processes and the reports of jobs.
_TELLING = {"status", "state", "error", "name", "scopes", "enabled", "description", "cron", "signal", "label", "why"}
_TELLING |= {"message", "choice", "value", "how", "kind", "verb", "namespace", "event"}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _plain(part) for name, part in value.items() if name in _TELLING or isinstance(part, dict)}
        return {name: part for name, part in kept.items() if name != "result" or "verb" not in kept}
    return [_plain(part) for part in value] if isinstance(value, list) else value
