"""Live streams through a server process: how soon a change is seen, by one client and by a thousand, and key to echo.

The server is a process of its own, this process writes to the store, and its clients are bare sockets.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from statistics import median
from typing import Any, NamedTuple

from perdure._app import Perdure
from perdure._runtime import keeper_control as keeping
from perdure._tasks import Task, store_of
from perdure.bench.figures import Budget, Figure
from perdure.bench.rounds import middle_ms
from perdure.bench.shells import BareTerminal
from perdure.bench.stage import Plot
from perdure.errors import StoreUnavailable

_SEEN_MS, _ALL_SEEN_MS, _ECHO_MS = 250.0, 1500.0, 20.0
_CLIENTS, _QUICK_CLIENTS = 1000, 50
_AT_ONCE = 32  # connections that are opened at the same time
_PATIENCE = 60.0
_NO_LIMITS = {
    "PERDURE_SERVER_RATE": "1000000",
    "PERDURE_SERVER_BURST": "1000000",
    "PERDURE_SERVER_STREAMS_PER_KEY": "2000",
}


class Address(NamedTuple):
    """Where a server listens, and the key to it."""

    port: int
    key: str


async def server(plot: Plot, quick: bool) -> list[Figure]:
    """The streams of one server; on machines without what a server needs, none."""
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        return []
    async with plot.app() as app:
        key = await _make_key(plot.url)
        with _serving(plot.url, key) as address:
            figures = [await _seen(plot, app, address, quick), await _seen_by_many(app, address, quick)]
            if plot.engine == "sqlite":  # the keeper does not know which store it is for
                figures.append(await _echoed(app, address, quick))
    return figures


# ── what is measured ─────────────────────────────────────────────────────────────────────────────


async def _seen(plot: Plot, app: Perdure, address: Address, quick: bool) -> Figure:
    """A task changes in this process; a client of the server sees its event."""
    task = await app.tasks.create("seen", state={})
    taken = []
    async with _stream(address, "/v1/tasks/seen/stream?after=now&parts=events") as heard:
        await _until(heard, b"event: hello")
        for number in range(10 if quick else 60):
            await asyncio.sleep(0.2)  # a burst would be told at once
            began = time.perf_counter()
            await _move(task, number)
            await _until(heard, b"event: event")
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
    """One change, until the last of many clients has it."""
    clients, taken = _QUICK_CLIENTS if quick else _CLIENTS, []
    task = await app.tasks.create("seen-by-many", state={})
    opened: list[Any] = []
    try:
        while len(opened) < clients:
            more = [_open(address, "/v1/stream?topics=tasks") for _ in range(min(_AT_ONCE, clients - len(opened)))]
            opened += await asyncio.gather(*more)
        await asyncio.gather(*(_until(reader, b"event: hello") for reader, _ in opened))
        await _move(task, 0)
        await asyncio.gather(*(_until(reader, b"seen-by-many") for reader, _ in opened))
        for number in range(1, 6):
            await asyncio.sleep(0.5)
            mark = b'"paused"' if number % 2 == 0 else b'"running"'
            began = time.perf_counter()
            await _move(task, number)
            await asyncio.gather(*(_until(reader, mark) for reader, _ in opened))
            taken.append((time.perf_counter() - began) * 1000)
    finally:
        for _, writer in opened:
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
    """A key, through the server, the keeper and a terminal, and back."""
    await app.tasks.open("typing", state={})
    runtime = await app.runtime("typing")
    unit, taken = "/v1/tasks/typing/units/main", []
    try:
        await runtime.shell("main", ["cat"])
        await _ask(address, "PUT", f"{unit}/writer", b"{}", "application/json")
        async with _stream(address, f"{unit}/output?follow=1") as heard, _connected(address) as ask:
            for number in range(50 if quick else 400):
                mark = b"%06d" % number
                began = time.perf_counter()
                sending = asyncio.ensure_future(
                    ask("POST", f"{unit}/input", mark, "application/octet-stream", f"Perdure-Input-Id: b{number}")
                )
                await _until(heard, mark)
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


# ── a server, and bare clients of it ─────────────────────────────────────────────────────────────


async def _make_key(url: str) -> str:
    from perdure.server import make_app

    application = make_app(url)
    try:
        return (await application.desk.keys.make("bench", ("admin",), "default")).text
    finally:
        await application.close()


@contextmanager
def _serving(url: str, key: str) -> Iterator[Address]:
    command = [sys.executable, "-m", "perdure", "serve", "--json", "--port", "0", "--no-access-log"]
    env = {**os.environ, "PERDURE_URL": url, **_NO_LIMITS}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=env
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            if not line:
                raise StoreUnavailable(f"no server could be started: {process.stderr.read()[-500:]}")
            yield Address(int(json.loads(line)["url"].rpartition(":")[2].strip("/")), key)
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def _head(address: Address, method: str, path: str, *more: str, size: int = 0) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{address.port}", f"Authorization: Bearer {address.key}"]
    return "\r\n".join([*lines, f"Content-Length: {size}", *more, "", ""]).encode()


async def _open(address: Address, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
    writer.write(_head(address, "GET", path))
    await _until(reader, b"HTTP/1.1 200")
    return reader, writer


@asynccontextmanager
async def _stream(address: Address, path: str) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await _open(address, path)
    try:
        yield reader
    finally:
        writer.close()


async def _until(reader: asyncio.StreamReader, text: bytes) -> None:
    """Read to the end of the next such text."""
    async with asyncio.timeout(_PATIENCE):
        await reader.readuntil(text)


Asking = Callable[..., Awaitable[None]]


@asynccontextmanager
async def _connected(address: Address) -> AsyncIterator[Asking]:
    """Requests one after the other on one connection, whose answers have no body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)

    async def ask(method: str, path: str, body: bytes, media: str, *more: str) -> None:
        writer.write(_head(address, method, path, f"Content-Type: {media}", *more, size=len(body)) + body)
        async with asyncio.timeout(_PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        if b" 204 " not in head.partition(b"\r\n")[0]:
            raise StoreUnavailable(f"the server answered {head[:60]!r}")

    try:
        yield ask
    finally:
        writer.close()


async def _ask(address: Address, method: str, path: str, body: bytes, media: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
    writer.write(_head(address, method, path, f"Content-Type: {media}", "Connection: close", size=len(body)) + body)
    async with asyncio.timeout(_PATIENCE):
        await reader.read()
    writer.close()
