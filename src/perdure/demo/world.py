"""The outside world of the demo: a service that acts on requests, and a model that costs money.

Both count what they are asked. The service keeps what was done under which key, as a payment service would.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class World:
    """All that was asked of it."""

    address: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)  # the key and the body of each effect
    model_calls: int = 0
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def keys(self) -> set[str]:
        return {key for key, _ in self.requests}

    def act(self, key: str, body: str) -> str:
        with self._turn:
            self.requests.append((key, body))
            return f"receipt {len(self.requests)}"

    def think(self) -> str:
        with self._turn:
            self.model_calls += 1
            return f"thought {self.model_calls}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    world: World


class _Answers(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        world = self.server.world
        key = self.headers.get("Idempotency-Key", "")
        answer = world.think() if self.path == "/model" else world.act(key, body)
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def running_world() -> Iterator[World]:
    """A world that answers while the block lasts."""
    server = _Server(("127.0.0.1", 0), _Answers)
    world = server.world = World(f"127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield world
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
