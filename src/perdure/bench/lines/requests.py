"""Requests to a server: reads and checkpoint writes per second, the list of many tasks, and the memory of an idle
server.

Beside each stands its floor: the same verb in this process, or a route of Starlette alone that answers a fixed text.
All are asked over the same number of connections at once, by bare sockets.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from perdure._app import Perdure
from perdure._tasks import Task
from perdure.bench.figures import Budget, Figure, figure_of
from perdure.bench.rounds import Contestant, take_turns
from perdure.bench.served import Address, exchanged, make_key, serving
from perdure.bench.stage import Plot
from perdure.client import RemotePerdure

_AT_ONCE = 8  # number of connections and of tasks
_READ_SHARE, _WRITE_SHARE = 0.5, 0.25
_LIST_MS, _IDLE_MB = 20.0, 90.0
_STATE = {"n": 0, "note": "x" * 200, "items": list(range(20))}
_BARE = """
import sys, socket, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
TEXT = b"x" * int(sys.argv[1])
async def answer(request):
    await request.body()
    return Response(TEXT, media_type="application/json")
door = socket.create_server(("127.0.0.1", 0))
door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print(door.getsockname()[1], flush=True)
app = Starlette(routes=[Route("/{rest:path}", answer, methods=["GET", "POST"])])
uvicorn.Server(uvicorn.Config(app, log_level="critical", http="h11", ws="none")).run(sockets=[door])
"""


async def requests(plot: Plot, quick: bool) -> list[Figure]:
    """Measure requests to one server; no lines where the server is not installed."""
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        return []
    async with plot.app() as app:
        for number in range(_AT_ONCE):
            await app.tasks.create(f"asked-{number}", state=_STATE)
        key = await make_key(plot.url)
        with serving(plot.url, key) as address, _bare_route() as bare:
            idle = _idle(address, bare)
            return [
                await _reads(app, address, bare, quick),
                await _writes(app, address, bare, quick),
                await _list(app, address, bare, quick),
                idle,
            ]


# ── what is measured ─────────────────────────────────────────────────────────────────────────────


async def _reads(app: Perdure, address: Address, bare: Address, quick: bool) -> Figure:
    times = 100 if quick else 400

    def over_http(there: Address) -> Callable[[], Awaitable[float]]:
        return lambda: _per_second(
            times, lambda number: exchanged(there, "GET", f"/v1/tasks/asked-{number}", times, status=200)
        )

    async def here(number: int) -> None:
        for _ in range(times):
            await app.tasks.get(f"asked-{number}")

    rounds = await take_turns(
        3 if quick else 5,
        {
            "floor": over_http(bare),
            "ours": over_http(address),
            "in process": lambda: _per_second(times, here),
        },
    )
    return _figure("reads of a task over HTTP", rounds, _READ_SHARE, "a route of Starlette alone")


async def _writes(app: Perdure, address: Address, bare: Address, quick: bool) -> Figure:
    """Store checkpoints of attempts, here and through the server."""
    times = 25 if quick else 150
    body = b'{"state": {"n": 1, "note": "' + b"x" * 200 + b'"}}'
    async with AsyncExitStack() as attempts:
        remote = await attempts.enter_async_context(RemotePerdure(address.url, key=address.key))
        here = await _attempts(attempts, app, "kept-here")
        there = await _attempts(attempts, remote, "kept-there")
        fences = [str(getattr(task, "_fence", "")) for task in there]

        def over_http(to: Address) -> Callable[[], Awaitable[float]]:
            return lambda: _per_second(times, lambda number: sent(to, number))

        async def sent(to: Address, number: int) -> None:
            path, fence = f"/v1/tasks/kept-there-{number}/checkpoints", f"Perdure-Fence: {fences[number]}"
            await exchanged(to, "POST", path, times, fence, body=body)

        async def kept(number: int) -> None:
            for count in range(times):
                await here[number].checkpoint({"n": count, "note": "x" * 200})

        contestants: dict[str, Contestant] = {
            "floor": lambda: _per_second(times, kept),
            "ours": over_http(address),
            "bare route": over_http(bare),
        }
        rounds = await take_turns(3 if quick else 5, contestants)
    return _figure("checkpoints over HTTP", rounds, _WRITE_SHARE, "the same verb in this process")


async def _attempts(stack: AsyncExitStack, app: Perdure, name: str) -> list[Task]:
    """Begin tasks with an attempt each; the stack ends them."""
    tasks = [await app.tasks.create(f"{name}-{number}", state=_STATE) for number in range(_AT_ONCE)]
    for task in tasks:
        await stack.enter_async_context(task.attempt())
    return tasks


def _figure(what: str, rounds: Any, share: float, floor_is: str) -> Figure:
    floor = rounds["floor"].median
    beside = next(name for name in rounds if name not in ("floor", "ours"))
    budget = Budget(floor * share, f"at least {share:g} × {floor_is}", at_least=True)
    detail = {beside.replace(" ", "_"): rounds[beside].median, "at_once": _AT_ONCE}
    return figure_of("requests", what, "/s", rounds, floor_is=floor_is, budget=budget, **detail)


async def _list(app: Perdure, address: Address, bare: Address, quick: bool) -> Figure:
    """List the first page of many tasks, most of them ended, with a filter that has no column."""
    many = 500 if quick else 100_000
    await _fill(app, many)
    taken = {
        name: await _slowest_ms(address, f"/v1/tasks{query}")
        for name, query in {"newest": "", "failed": "?status=failed", "stuck": "?situation=stuck"}.items()
    }
    return Figure(
        name="requests",
        what=f"first page of {many:,} tasks, p90 of the slowest filter",
        unit="ms",
        figure=max(taken.values()),
        floor=await _slowest_ms(bare, "/"),
        floor_is="a route of Starlette alone",
        budget=Budget(_LIST_MS, f"at most {_LIST_MS:g} ms"),
        detail=taken,
    )


async def _slowest_ms(there: Address, path: str) -> float:
    """The time of the ninth fastest of ten requests."""
    taken = []
    for _ in range(20):
        began = time.perf_counter()
        await exchanged(there, "GET", path, 1, status=200)
        taken.append((time.perf_counter() - began) * 1000)
    return sorted(taken)[17]


def _idle(address: Address, bare: Address) -> Figure:
    return Figure(
        name="requests",
        what="memory of an idle server",
        unit="MB",
        figure=_resident_mb(address.pid),
        floor=_resident_mb(bare.pid),
        floor_is="a server of Starlette alone",
        budget=Budget(_IDLE_MB, f"at most {_IDLE_MB:g} MB"),
    )


# ── how ──────────────────────────────────────────────────────────────────────────────────────────


async def _per_second(times: int, act: Callable[[int], Awaitable[None]]) -> float:
    """The rate of several workers at once, each doing its work `times` times."""
    began = time.perf_counter()
    await asyncio.gather(*(act(number) for number in range(_AT_ONCE)))
    return times * _AT_ONCE / (time.perf_counter() - began)


@contextmanager
def _bare_route() -> Iterator[Address]:
    """A route of Starlette alone, in a process of its own, that answers a text about as long as a task's record."""
    with Popen([sys.executable, "-c", _BARE, "900"], stdout=PIPE, encoding="ascii") as process:
        try:
            assert process.stdout is not None
            yield Address(int(process.stdout.readline()), "none", process.pid)
        finally:
            process.terminate()
            process.wait()


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


async def _fill(app: Perdure, many: int) -> None:
    """Fill a store as after long use: of 100 tasks 97 are completed, and one each is failed, paused and running."""
    ends: list[Callable[[Any], Awaitable[Any]]] = [
        lambda task: task.fail({"type": "ValueError", "message": "no"}),
        lambda task: task.pause("Go on?"),
        lambda task: asyncio.sleep(0),
    ]

    async def make(number: int) -> None:
        task = await app.tasks.create(f"filler-{number:06d}", state={"n": number})
        kind = number % 100
        await (ends[kind](task) if kind < len(ends) else task.complete({"n": number}))

    for start in range(0, many, 2000):
        await asyncio.gather(*(make(number) for number in range(start, min(many, start + 2000))))
