"""S3, six pause types and a deploy: the task, its workers, and the world it waits for.

One task goes through every kind of pause. Three workers compete for it; at every pause all of them are killed and
others take their place, from the third pause on with newer code, which has one more step at the end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from perdure import Perdure, checks, durable, pause, step
from perdure._ground.clock import MovableClock
from tests.support.processes import Child, Link, Nursery
from tests.support.waiting import look_again

# What the code of this process is: set when a worker starts.
code = {"name": "old"}


def note(folder: str, what: str) -> None:
    with open(f"{folder}/notes", "a") as file:
        file.write(f"{what}\n")


@step(flush=True)
async def begin(folder: str) -> None:
    note(folder, "begin")


@step(flush=True)
async def begin_otherwise(folder: str) -> None:
    note(folder, "begin otherwise")


@step(flush=True)
async def done(folder: str, what: str) -> None:
    note(folder, what)


@step(flush=True)
async def call_api(folder: str, address: str) -> dict[str, Any]:
    """One request; 429 says when to come back."""
    from urllib.error import HTTPError
    from urllib.request import urlopen

    def fetch() -> dict[str, Any]:
        try:
            with urlopen(f"{address}/api") as response:
                return {"status": response.status}
        except HTTPError as refused:
            return {"status": refused.code, "retry_after": float(refused.headers["Retry-After"])}

    return await asyncio.to_thread(fetch)


@durable(name="s3.journey")
async def journey(folder: str, address: str) -> list[Any]:
    await (begin_otherwise if code["name"] == "renamed" else begin)(folder)
    yes = await pause.approval("Shall we go?")
    await done(folder, f"approved by {yes.by}")
    many = await pause.input("How many?", int)
    await done(folder, f"{many} of them")

    async def told_early(token: str) -> None:
        """The other system answers before the pause is stored."""
        Path(folder, "early.token").write_text(token)
        while not Path(folder, "early.posted").exists():
            await look_again()

    async def told(token: str) -> None:
        Path(folder, "token").write_text(token)

    early = await pause.callback("an early webhook", dict, announce=told_early)
    await done(folder, "early webhook")
    late = await pause.callback("a webhook", dict, announce=told)
    await done(folder, "webhook")
    job = await pause.poll(checks.url(f"{address}/ci", expect={"state": "green"}), every=timedelta(seconds=10))
    await done(folder, "green")
    await pause.wait(seconds=3)
    await done(folder, "waited")
    while (answer := await call_api(folder, address))["status"] == 429:
        await pause.rate_limit(retry_after=answer["retry_after"], provider="the api")
    await done(folder, "called")
    other = await pause.task("b")
    await done(folder, "after b")
    await pause.yield_now()
    await done(folder, "yielded")
    if code["name"] == "new":
        await done(folder, "the new step")
    return [yes.comment, many, early, late, job, other]


@durable(name="s3.alone")
async def left_alone() -> str:
    from perdure.errors import Rejected

    try:
        await pause.approval("Anybody?", expires=timedelta(seconds=2), default="reject")
    except Rejected as no:
        return f"rejected, expired: {no.expired}"
    return "approved"


# ── workers ──────────────────────────────────────────────────────────────────────────────────────


async def work(link: Link, url: str, name: str) -> None:
    code["name"] = name
    async with Perdure(url) as app, app.worker():
        link.send(("said", "ready"))
        await asyncio.Event().wait()


async def complete_b(link: Link, url: str) -> str:
    async with Perdure(url) as app:
        await (await app.tasks.open("b")).complete({"b": "is done"})
    return "done"


class Fleet:
    """Three workers, and those who come after them."""

    def __init__(self, children: Nursery, url: str, clock: MovableClock) -> None:
        self._children, self._url = children, url
        self._env = {"PERDURE_TEST_CLOCK": str(clock.path)}
        self._workers: list[Child] = []
        self.pids: list[int] = []

    def start(self, name: str = "old") -> None:
        self._workers = [self._children.start(work, self._url, name, env=self._env) for _ in range(3)]
        assert [worker.heard() for worker in self._workers] == ["ready"] * 3
        self.pids += [worker.pid for worker in self._workers]

    def kill(self) -> None:
        for worker in self._workers:
            worker.kill()
        assert not [worker.pid for worker in self._workers if os.path.exists(f"/proc/{worker.pid}")]

    def have_b_completed(self) -> None:
        assert self._children.run(complete_b, self._url, env=self._env) == "done"


# ── the world ────────────────────────────────────────────────────────────────────────────────────


class World:
    """A CI that turns green when the test says so, and an API that says 429 once."""

    def __init__(self, clock: MovableClock) -> None:
        self.clock, self.state = clock, "pending"
        self.calls: list[int] = []  # when the API was called
        self.address = ""

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        if path == "/ci":
            return 200, {}, b'{"state": "%s", "job": 812}' % self.state.encode()
        self.calls.append(self.clock.now_ms())
        return (429, {"Retry-After": "2"}, b"") if len(self.calls) == 1 else (200, {}, b"{}")


@contextmanager
def world_at(clock: MovableClock) -> Iterator[World]:
    world = World(clock)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = world.answer(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    Thread(target=server.serve_forever, daemon=True).start()
    world.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield world
    finally:
        server.shutdown()
        server.server_close()
