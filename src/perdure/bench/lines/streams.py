"""Live streams through a server process: the delay of a change for one client and for a thousand, and from key to echo.

The server is a process of its own, this process writes to the store, and its clients are bare sockets.
"""

from __future__ import annotations

import asyncio
import socket
import time
from importlib.util import find_spec
from statistics import median
from typing import Any

from perdure._app import Perdure
from perdure._runtime import keeper_control as keeping
from perdure._tasks import Task, store_of
from perdure.bench.figures import Budget, Figure
from perdure.bench.lines.shells import BareTerminal
from perdure.bench.rounds import middle_ms
from perdure.bench.served import Address, ask_once, connected, make_key, opened, serving, stream, until
from perdure.bench.stage import Plot

_SEEN_MS, _ALL_SEEN_MS, _ECHO_MS = 250.0, 1500.0, 20.0
_CLIENTS, _QUICK_CLIENTS = 1000, 50
_AT_ONCE = 32  # number of connections that are opened at the same time


async def server(plot: Plot, quick: bool) -> list[Figure]:
    """Measure the streams of one server; no lines where the server is not installed."""
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        return []
    async with plot.app() as app:
        key = await make_key(plot.url)
        with serving(plot.url, key) as address:
            figures = [await _seen(plot, app, address, quick), await _seen_by_many(app, address, quick)]
            if plot.engine == "sqlite":  # on one engine only, because the keeper does not depend on the store
                figures.append(await _echoed(app, address, quick))
    return figures


# ── what is measured ─────────────────────────────────────────────────────────────────────────────


async def _seen(plot: Plot, app: Perdure, address: Address, quick: bool) -> Figure:
    """Change a task in this process, and time its event at a client of the server."""
    task = await app.tasks.create("seen", state={})
    taken = []
    async with stream(address, "/v1/tasks/seen/stream?after=now&parts=events") as heard:
        await until(heard, b"event: hello")
        for number in range(10 if quick else 60):
            await asyncio.sleep(0.2)  # a burst would be sent at once
            began = time.perf_counter()
            await _move(task, number)
            await until(heard, b"event: event")
            taken.append((time.perf_counter() - began) * 1000)
    return Figure(
        name="server",
        what="event committed here, seen by a client of a server elsewhere",
        unit="ms",
        figure=median(taken),
        floor=middle_ms(plot.bare.commit, 20),
        floor_is=f"{plot.bare.name}: commit of 1 kB",
        budget=Budget(_SEEN_MS, f"at most {_SEEN_MS:g} ms"),
        detail={"worst": max(taken)},
    )


async def _seen_by_many(app: Perdure, address: Address, quick: bool) -> Figure:
    """Time one change until the last of many clients has it."""
    clients, taken = _QUICK_CLIENTS if quick else _CLIENTS, []
    task = await app.tasks.create("seen-by-many", state={})
    lines: list[Any] = []
    try:
        while len(lines) < clients:
            more = [opened(address, "/v1/stream?topics=tasks") for _ in range(min(_AT_ONCE, clients - len(lines)))]
            lines += await asyncio.gather(*more)
        await asyncio.gather(*(until(reader, b"event: hello") for reader, _ in lines))
        await _move(task, 0)
        await asyncio.gather(*(until(reader, b"seen-by-many") for reader, _ in lines))
        for number in range(1, 6):
            await asyncio.sleep(0.5)
            mark = b'"paused"' if number % 2 == 0 else b'"running"'
            began = time.perf_counter()
            await _move(task, number)
            await asyncio.gather(*(until(reader, mark) for reader, _ in lines))
            taken.append((time.perf_counter() - began) * 1000)
    finally:
        for _, writer in lines:
            writer.close()
    return Figure(
        name="server",
        what=f"one change, seen by the last of {clients:,} clients",
        unit="ms",
        figure=median(taken),
        floor=_bare_sockets_ms(clients),
        floor_is="1 kB through as many bare sockets",
        budget=Budget(_ALL_SEEN_MS, f"at most {_ALL_SEEN_MS:g} ms"),
        detail={"worst": max(taken), "clients": clients},
    )


async def _echoed(app: Perdure, address: Address, quick: bool) -> Figure:
    """Time a key through the server, the keeper and a terminal, and back."""
    await app.tasks.open("typing", state={})
    runtime = await app.runtime("typing")
    unit, taken = "/v1/tasks/typing/units/main", []
    try:
        await runtime.shell("main", ["cat"])
        await ask_once(address, "PUT", f"{unit}/writer", b"{}", "application/json")
        async with stream(address, f"{unit}/output?follow=1") as heard, connected(address) as ask:
            for number in range(50 if quick else 400):
                mark = b"%06d" % number
                began = time.perf_counter()
                sending = asyncio.ensure_future(
                    ask("POST", f"{unit}/input", mark, "application/octet-stream", f"Perdure-Input-Id: b{number}")
                )
                await until(heard, mark)
                taken.append((time.perf_counter() - began) * 1000)
                await sending
    finally:
        await keeping.stop(store_of(app.tasks), units_too=True)
    return Figure(
        name="server",
        what="key typed through a server, echo seen",
        unit="ms",
        figure=median(taken),
        floor=_bare_echo_ms(),
        floor_is="a bare terminal",
        budget=Budget(_ECHO_MS, f"at most {_ECHO_MS:g} ms"),
        detail={"worst": max(taken)},
    )


def _bare_sockets_ms(clients: int) -> float:
    one, other = socket.socketpair()
    with one, other:

        def pass_all() -> None:
            for _ in range(clients):
                one.sendall(b"x" * 1024)
                other.recv(4096)

        return middle_ms(pass_all, 5)


def _bare_echo_ms() -> float:
    terminal = BareTerminal("cat")
    try:
        return middle_ms(terminal.echo, 50)
    finally:
        terminal.close()


async def _move(task: Task, number: int) -> None:
    await (task.pause("…") if number % 2 == 0 else task.resume())
