"""A real server process, and raw sockets to it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.support.http_server import Reply

PATIENCE = 120.0


@dataclass
class LiveServer:
    """A server, where it listens, and the link it has printed."""

    process: subprocess.Popen[str]
    told: dict[str, Any]

    @property
    def port(self) -> int:
        return int(urlsplit(self.told["url"]).port or 0)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
        """One request on a connection of its own. In names of headers, `_` stands for `-`."""
        lines = {"Host": self.host, "Connection": "close", "Content-Length": str(len(body))}
        lines |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        with self.connect() as connection:
            connection.sendall(head.encode() + b"\r\n" + body)
            return read_reply(connection)

    def send_raw(self, data: bytes) -> bytes:
        """All that the server answers to these bytes until it closes the connection."""
        with self.connect() as connection:
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data)
            return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    found = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            found += part
    return found


def read_reply(connection: socket.socket) -> Reply:
    raw = read_all(connection)
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Reply(int(first.split()[1]), headers, body)


def environment(url: str, **more: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, "PERDURE_URL": url, "PYTHONPATH": path, **more}


@contextmanager
def started(url: str, *arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """`perdure …` as a process that does not outlive the block."""
    command = [sys.executable, "-m", "perdure", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(url, **more)
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def live_server(url: str, *options: str, command: str = "up", port: int = 0, **more: str) -> Iterator[LiveServer]:
    """A server that has said it is ready, on a port of its own, or on the one that is named."""
    arguments = [command, "--json", "--port", str(port), "--no-access-log", *options]
    with started(url, *arguments, **more) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield LiveServer(process, json.loads(line))
