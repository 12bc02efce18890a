"""Restate: a step is `ctx.run`; the server keeps each one before the next begins, so `chain` and `waited` are one.

This process serves the handlers, and the server calls it by HTTP/2. The address names three ports: where calls go in,
the server's administration, and where this process serves.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlsplit

import hypercorn
import hypercorn.asyncio
import restate
from kit import STEPS_IN_CROWD, WARM, Clock, LastStep, Place, answer

LOADED_AT = time.time()
PATIENCE_SECONDS = 300
last: LastStep
peers = restate.Service("peers")


async def small(number: int) -> int:
    return number


async def one_more() -> None:
    await asyncio.to_thread(last.reached)
    if not last.resumes:
        await asyncio.Event().wait()


@peers.handler()
async def steps(ctx: restate.Context, many: int) -> int:
    for number in range(many):
        await ctx.run_typed("small", small, number=number)
    return many


@peers.handler()
async def recorded(ctx: restate.Context, many: int) -> int:
    for number in range(many):
        await ctx.run_typed("small", small, number=number)
    await ctx.run_typed("one more", one_more)
    return many


class Served:
    """The handlers, served and known to the server."""

    def __init__(self, place: Place) -> None:
        parts = urlsplit(place.url)
        asked = parse_qs(parts.query)
        self._ingress, self._admin = f"http://{parts.netloc}", f"http://127.0.0.1:{asked['admin'][0]}"
        self._bind = f"127.0.0.1:{asked['service'][0]}"
        self._ended = asyncio.Event()
        self._callers = ThreadPoolExecutor(200)

    async def __aenter__(self) -> Served:
        settings = hypercorn.Config()
        settings.bind, settings.loglevel = [self._bind], "ERROR"
        settings.h2_max_concurrent_streams = settings.keep_alive_max_requests = 2_147_483_647
        app: Any = restate.app([peers])
        self._serving = asyncio.create_task(hypercorn.asyncio.serve(app, settings, shutdown_trigger=self._ended.wait))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ended.set()
        await self._serving
        self._callers.shutdown()

    async def register(self) -> None:
        while True:
            try:
                await self._post(f"{self._admin}/deployments", {"uri": f"http://{self._bind}", "force": True})
                return
            except urllib.error.HTTPError:
                await asyncio.sleep(0.05)  # it has not begun to listen

    async def call(self, handler: str, many: int) -> None:
        await self._post(f"{self._ingress}/peers/{handler}", many)

    async def send(self, handler: str, many: int) -> None:
        await self._post(f"{self._ingress}/peers/{handler}/send", many)

    async def _post(self, url: str, body: Any) -> bytes:
        def post() -> bytes:
            request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as found:
                return bytes(found.read())

        return await asyncio.get_running_loop().run_in_executor(self._callers, post)


def registered(line: Callable[[Served, int], Awaitable[float | None]]) -> Callable[[Place], float | None]:
    async def run(place: Place) -> float | None:
        async with Served(place) as served:
            await served.register()
            return await line(served, place.size)

    return lambda place: asyncio.run(run(place))


async def chain(served: Served, many: int) -> float:
    await served.call("steps", WARM)
    with Clock() as clock:
        await served.call("steps", many)
    return clock.ms


async def crowd(served: Served, many: int) -> float:
    await served.call("steps", WARM)
    with Clock() as clock:
        await asyncio.gather(*(served.call("steps", STEPS_IN_CROWD) for _ in range(many)))
    return clock.rate(many * STEPS_IN_CROWD)


async def fill(served: Served, many: int) -> None:
    global last
    last = LastStep(resumes=False, loaded_at=LOADED_AT)
    await served.send("recorded", many)
    await asyncio.Event().wait()


def resume(place: Place) -> None:
    """The server calls again by itself, after a pause that grows."""
    global last
    last = LastStep(resumes=True, loaded_at=LOADED_AT)

    async def serve() -> None:
        async with Served(place):
            await asyncio.Event().wait()

    asyncio.run(serve())


LINES = {
    **{line.__name__: registered(line) for line in (chain, crowd, fill)},
    "waited": registered(chain),
    "resume": resume,
}

if __name__ == "__main__":
    answer(LINES, lambda _: "", ["restate-sdk", "hypercorn"])
