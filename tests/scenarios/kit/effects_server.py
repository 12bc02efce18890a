"""A target on the network: it counts what was done to it, and can be as unhelpful as a real one.

    POST /<name>   do it; the body says what, `Idempotency-Key` under which key
    GET  /<name>   was it done? the query says what

It honours keys, or does not; it can be asked, or cannot. A fault happens once, after the effect is done:
`kill` ends the sender before it is answered, `drop` closes the line, `hang` never answers. `busy` answers 429
before anything is done.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Target:
    """What the server knows."""

    honours_keys: bool = False
    can_be_asked: bool = False
    requests: list[tuple[str, str]] = field(default_factory=list)  # name and key of each
    done: list[tuple[str, str]] = field(default_factory=list)  # name and what, in order
    faults: dict[str, list[str]] = field(default_factory=dict)  # by name: what goes wrong next
    address: str = ""
    _by_key: dict[str, str] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    def keys_of(self, name: str) -> set[str]:
        return {key for found, key in self.requests if found == name}

    def count(self, name: str) -> int:
        return sum(found == name for found, _ in self.done)

    def do(self, name: str, what: str, key: str) -> tuple[int, str, str]:
        """The answer's status and text, and the fault that is to follow."""
        with self._turn:
            self.requests.append((name, key))
            fault = self.faults.get(name, [])
            if fault and fault[0] == "busy":
                fault.pop(0)
                return 429, "later", ""
            if self.honours_keys and key in self._by_key:
                return 200, self._by_key[key], ""
            self.done.append((name, what))
            receipt = self._by_key[key] = f"{name} of {what}"
            return 200, receipt, fault.pop(0) if fault else ""

    def look(self, name: str, what: str) -> tuple[int, str]:
        with self._turn:
            if not self.can_be_asked:
                return 404, "cannot be asked"
            return 200, json.dumps(f"{name} of {what}" if (name, what) in self.done else None)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        target = self.server.target
        status, text, fault = target.do(self.path[1:], body, self.headers.get("Idempotency-Key", ""))
        if fault == "kill":
            os.kill(int(self.headers["X-Pid"]), signal.SIGKILL)
        elif fault == "hang":
            target._over.wait()
        if fault:
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self._answer(status, text)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self._answer(*self.server.target.look(parts.path[1:], parse_qs(parts.query)["what"][0]))

    def _answer(self, status: int, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    target: Target

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a sender that was killed


@contextlib.contextmanager
def effects_server(**how: Any) -> Iterator[Target]:
    """A running server; `how` are the fields of its Target."""
    server = _Server(("127.0.0.1", 0), _Handler)
    target = server.target = Target(**how)
    target.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield target
    finally:
        target._over.set()
        server.shutdown()
        server.server_close()
        thread.join()
