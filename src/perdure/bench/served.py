"""A server in a process of its own, for measuring, and bare sockets as its clients."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

from perdure.errors import StoreUnavailable

_PATIENCE = 60.0
_NO_LIMITS = {
    "PERDURE_SERVER_RATE": "1000000",
    "PERDURE_SERVER_BURST": "1000000",
    "PERDURE_SERVER_STREAMS_PER_KEY": "2000",
}


class Address(NamedTuple):
    """The address of a server, and a key for it."""

    port: int
    key: str
    pid: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


async def make_key(url: str) -> str:
    from perdure.server import make_app

    application = make_app(url)
    try:
        return (await application.desk.keys.make("bench", ("admin",), "default")).text
    finally:
        await application.close()


@contextmanager
def serving(url: str, key: str) -> Iterator[Address]:
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
            yield Address(int(json.loads(line)["url"].rpartition(":")[2].strip("/")), key, process.pid)
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def head(address: Address, method: str, path: str, *more: str, size: int = 0) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{address.port}", f"Authorization: Bearer {address.key}"]
    return "\r\n".join([*lines, f"Content-Length: {size}", *more, "", ""]).encode()


async def opened(address: Address, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
    writer.write(head(address, "GET", path))
    await until(reader, b"HTTP/1.1 200")
    return reader, writer


@asynccontextmanager
async def stream(address: Address, path: str) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await opened(address, path)
    try:
        yield reader
    finally:
        writer.close()


async def until(reader: asyncio.StreamReader, text: bytes) -> None:
    """Read to the end of the next occurrence of the text."""
    async with asyncio.timeout(_PATIENCE):
        await reader.readuntil(text)


Asking = Callable[..., Awaitable[None]]


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[Asking]:
    """Send requests one after the other on one connection; their answers have no body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)

    async def ask(method: str, path: str, body: bytes, media: str, *more: str) -> None:
        writer.write(head(address, method, path, f"Content-Type: {media}", *more, size=len(body)) + body)
        async with asyncio.timeout(_PATIENCE):
            told = await reader.readuntil(b"\r\n\r\n")
        if b" 204 " not in told.partition(b"\r\n")[0]:
            raise StoreUnavailable(f"the server answered {told[:60]!r}")

    try:
        yield ask
    finally:
        writer.close()


async def ask_once(address: Address, method: str, path: str, body: bytes, media: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
    writer.write(head(address, method, path, f"Content-Type: {media}", "Connection: close", size=len(body)) + body)
    async with asyncio.timeout(_PATIENCE):
        await reader.read()
    writer.close()


async def exchanged(
    address: Address, method: str, path: str, times: int, *more: str, body: bytes = b"", status: int | None = None
) -> None:
    """Send the same request `times` times, one after the other on one connection; every answer is read whole.

    Raises:
        StoreUnavailable: the server refused one.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
    media = ("Content-Type: application/json",) if body else ()
    asked = head(address, method, path, *media, *more, size=len(body)) + body
    try:
        for _ in range(times):
            writer.write(asked)
            async with asyncio.timeout(_PATIENCE):
                told = await reader.readuntil(b"\r\n\r\n")
                lines = told.lower().partition(b"content-length: ")[2]
                await reader.readexactly(int(lines.partition(b"\r")[0] or 0))
            found = int(told[9:12])
            if found >= 300 or (status is not None and found != status):
                raise StoreUnavailable(f"the server answered {told[:60]!r}")
    finally:
        writer.close()
