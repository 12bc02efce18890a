"""Many clients, slow clients and clients that never read: each sees what is true now, and none costs the others."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import uvicorn

from perdure import Perdure, durable, step
from perdure.server import Caller, Settings, make_app
from perdure.server.live.messages import MOST_BYTES, MOST_MESSAGES, Buffer, Message
from perdure.server.process.wire import Crowd, Limits, wire_for
from tests.server.streaming import a_server
from tests.support.asking import ALL, Known
from tests.support.waiting import look_again

CLIENTS, TASKS = 100, 10
PATH = "/v1/stream?topics=tasks"


@step
async def double(number: int) -> int:
    return 2 * number


@durable
async def doubles(upto: int) -> int:
    return sum([await double(number) for number in range(upto)])


async def connected(address: str, path: str = PATH) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    port = urlsplit(address).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\n\r\n".encode())
    await reader.readuntil(b"event: hello")
    return reader, writer


async def last_of_each(reader: asyncio.StreamReader) -> dict[str, str]:
    """Read until every task is told as completed; the last status of each."""
    found: dict[str, str] = {}
    async with asyncio.timeout(120):
        while [*found.values()] != ["completed"] * TASKS:
            line = await reader.readline()
            if line.startswith(b'data: {"topic":"tasks"'):
                task = json.loads(line[6:])["task"]
                found[task["id"]] = task["status"]
    return found


async def test_a_hundred_clients_hear_how_each_task_ended(shared_url):
    with a_server(shared_url, streams_per_key=CLIENTS) as (address, server):
        opened = [await connected(address) for _ in range(CLIENTS)]
        assert server.live.rooms.taken == CLIENTS
        hearing = [asyncio.ensure_future(last_of_each(reader)) for reader, _ in opened]
        async with Perdure(shared_url) as app:
            await asyncio.gather(*(app.run(f"sum-{number}", doubles, 20) for number in range(TASKS)))
            heard = await asyncio.gather(*hearing)
        assert [len(one) for one in heard] == [TASKS] * CLIENTS
        for _, writer in opened:
            writer.close()
        async with asyncio.timeout(120):
            while server.live.rooms.taken:
                await look_again()


def test_a_buffer_holds_the_newest_of_each_thing_and_never_too_much():
    buffer = Buffer(Caller("default", ALL, "ada", "key"))
    for number in range(10_000):
        buffer.put(f"f.{number}", Message("task", number % 3, lambda _, number=number: number))
    assert [message.data(buffer.caller) for _, message in buffer.take()[1]] == [b"9997", b"9998", b"9999"]
    for number in range(MOST_MESSAGES + 1):
        buffer.put(f"f.{number}", Message("task", number, lambda _: 0))
    assert buffer.take() == ("overflow", [])
    large = "x" * (MOST_BYTES // 4)
    for number in range(4):
        buffer.put(f"f.{number}", Message("task", number, lambda _: large))
    assert buffer.take()[0] == "overflow"
    assert buffer.take() == ("", [])


@asynccontextmanager
async def on_the_wire(url: str, limits: Limits) -> AsyncIterator[tuple[int, object]]:
    """A server on this loop, with deadlines of its own."""
    server = make_app(url, Settings())
    server._guard, server._identity = None, Known(ALL)
    door = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        server, http=wire_for(Crowd(limits)), log_config=None, ws="none", lifespan="on", timeout_graceful_shutdown=5
    )
    running = uvicorn.Server(config)
    running.install_signal_handlers = lambda: None  # type: ignore[method-assign]
    serving = asyncio.ensure_future(running.serve([door]))
    try:
        yield door.getsockname()[1], server
    finally:
        server.stopping.set()
        running.should_exit = True
        await serving


async def test_a_client_that_never_reads_is_dropped_and_costs_the_others_nothing(quick_url):
    async with Perdure(quick_url) as app, on_the_wire(quick_url, Limits(read_seconds=0.2)) as (port, server):
        task = await app.tasks.create("large", state={})
        for _ in range(120):
            await task.pause("x" * 100_000)
            await task.resume()
        last = (await app.tasks.events("large"))[-1].number
        with socket.socket() as stuck:
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stuck.connect(("127.0.0.1", port))
            stuck.sendall(f"GET /v1/tasks/large/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            reader, writer = await connected(f"http://127.0.0.1:{port}", "/v1/tasks/large/stream")
            async with asyncio.timeout(120):
                while f"id: e{last}.".encode() not in await reader.readline():
                    pass
                while server.live.rooms.taken > 1:
                    await look_again()
        writer.close()
