"""Connections that cannot be held open by doing nothing.

uvicorn reads a request for as long as it takes. This protocol closes a connection whose headers do not end within 10 s
of its beginning or of the last answer, whose body comes more slowly than 64 kB a second after the first 30 s, or whose
reader takes nothing for 30 s. It bounds how many lines and bytes a request's head has and how many connections there
are, and tells the application which user is at the other end of a Unix socket.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from perdure.server.http import HttpProblem, body_of, to_json

log = logging.getLogger("perdure.server")
HEAD_BYTES = 16 * 1024
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_REASONS = {400: b"Bad Request", 408: b"Request Timeout", 414: b"URI Too Long", 431: b"Request Header Fields Too Large"}
_REASONS[503] = b"Service Unavailable"

App = Callable[..., Awaitable[None]]


class Limits(NamedTuple):
    """Seconds, bytes and numbers that a connection has to keep to."""

    head_seconds: float = 10.0
    body_seconds: float = 30.0
    body_rate: int = 64 * 1024  # bytes that earn one more second
    read_seconds: float = 30.0  # for a client to take what was sent
    head_lines: int = 64
    head_bytes: int = HEAD_BYTES
    target_bytes: int = 8 * 1024
    connections: int = 2000
    strangers: int = 64  # connections of one address on which no credential was accepted yet


class Crowd:
    """The connections of one server."""

    def __init__(self, limits: Limits | None = None, is_exempt: Callable[[str], bool] = lambda _: False) -> None:
        """`is_exempt` names addresses, as those of proxies, that many strangers share."""
        self.limits, self.is_exempt = limits or Limits(), is_exempt
        self.total = 0
        self.strangers: Counter[str] = Counter()

    def admit(self, address: str) -> bool:
        """Count a new connection; False when there is no room for it. It is counted either way."""
        self.total += 1
        self.strangers[address] += 1
        is_crowded = self.strangers[address] > self.limits.strangers and address and not self.is_exempt(address)
        return self.total <= self.limits.connections and not is_crowded

    def know(self, address: str) -> None:
        self.strangers[address] -= 1
        if self.strangers[address] <= 0:
            del self.strangers[address]


class Wire(H11Protocol):
    """One connection."""

    crowd: Crowd  # set by `wire_for`

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._limits = self.crowd.limits
        self._inner: App = self.app
        self.app = self._carry_out
        self._deadline: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._has_begun = False  # something of the next request has come
        self._body_bytes, self._body_began = 0, 0.0
        self._is_known = False
        self._is_refused = False
        self._address = ""
        self._uid: int | None = None

    # ── a connection's life ─────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._uid = _peer_uid(transport)
        self._address = self.client[0] if self.client else ""
        if not self.crowd.admit(self._address):
            self._refuse(503, "too_many_connections", "this server has too many connections")
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.crowd.total -= 1
        if not self._is_known:
            self.crowd.know(self._address)
        self._stop(self._deadline)
        self._stop(self._reading)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._has_begun = True
        self._body_bytes += len(data)
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._expect_head()
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._cut_soon()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop(self._reading)
        self._reading = self.loop.call_later(self._limits.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop(self._reading)
        super().resume_writing()

    # ── deadlines ───────────────────────────────────────────────────────────────────────────────

    def _expect_head(self) -> None:
        self._stop(self._deadline)
        self._has_begun = False
        self._deadline = self.loop.call_later(self._limits.head_seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        if self._has_begun:
            self._refuse(408, "too_slow", "the request's headers did not come in time")
        else:  # nobody has asked anything
            self._is_refused = True
            self.transport.close()
            self._cut_soon()

    def _expect_body(self) -> None:
        self._stop(self._deadline)
        self._body_bytes, self._body_began = 0, self.loop.time()
        self._deadline = self.loop.call_later(self._limits.body_seconds, self._body_may_be_late)

    def _body_may_be_late(self) -> None:
        if not self.cycle.more_body:
            return
        earned = self._limits.body_seconds + self._body_bytes / self._limits.body_rate
        left = self._body_began + earned - self.loop.time()
        if left > 0:
            self._deadline = self.loop.call_later(left, self._body_may_be_late)
            return
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        self._refuse(408, "too_slow", "the request's body did not come in time")

    def _cut_soon(self) -> None:
        """Closing waits until all is written, and a client that reads nothing would make it wait for good."""
        self.loop.call_later(self._limits.read_seconds, self.transport.abort)

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()

    # ── requests ────────────────────────────────────────────────────────────────────────────────

    async def _carry_out(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        if problem := self._problem_with(scope):
            await send({"type": "http.response.start", "status": problem.status, "headers": _heads(problem)})
            await send({"type": "http.response.body", "body": _body(problem)})
            return
        scope["extensions"] = {**scope.get("extensions", {}), "perdure.peer": {"uid": self._uid}}
        if self.cycle.more_body:
            self._expect_body()
        else:
            self._stop(self._deadline)

        async def send_and_look(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                self._become_known(scope)
            await send(message)

        await self._inner(scope, receive, send_and_look)

    def _problem_with(self, scope: dict[str, Any]) -> HttpProblem | None:
        limits, headers = self._limits, scope["headers"]
        if len(scope["raw_path"]) + len(scope["query_string"]) + 1 > limits.target_bytes:
            return HttpProblem(414, "target_too_long", f"an address has at most {limits.target_bytes} bytes")
        if len(headers) > limits.head_lines:
            return HttpProblem(431, "head_too_large", f"a request has at most {limits.head_lines} header lines")
        if sum(len(name) + len(value) for name, value in headers) > limits.head_bytes:
            return HttpProblem(431, "head_too_large", f"a request has at most {limits.head_bytes} bytes of headers")
        names = [name for name, _ in headers]
        if b"transfer-encoding" in names and b"content-length" in names:
            return HttpProblem(400, "bad_request", "a request has a Content-Length or a Transfer-Encoding, not both")
        return None

    def _become_known(self, scope: dict[str, Any]) -> None:
        if not self._is_known and any(name in (b"authorization", b"cookie") for name, _ in scope["headers"]):
            self._is_known = True
            self.crowd.know(self._address)

    # ── refusing ────────────────────────────────────────────────────────────────────────────────

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn while it handles the exception of a request that cannot be read."""
        error = sys.exception()
        status = getattr(error, "error_status_hint", 400)
        if status == 431:
            self._refuse(431, "head_too_large", f"a request has at most {self._limits.head_bytes} bytes of headers")
        else:
            self._refuse(400, "bad_request", "this is not an HTTP request")

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Answer, if nothing was answered yet, and close the connection."""
        if self._is_refused:
            return
        self._is_refused = True
        problem = HttpProblem(status, code, detail)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not self.transport.is_closing():
            body = _body(problem)
            lines = [b"HTTP/1.1 %d %s" % (status, _REASONS.get(status, b"Bad Request"))]
            lines += [name + b": " + value for name, value in _heads(problem)]
            self.transport.write(b"\r\n".join([*lines, b"", body]))
        log.info("connection refused: %s", code, extra={"status": status, "route": "-"})
        self.transport.close()
        self._cut_soon()


def wire_for(crowd: Crowd) -> type[Wire]:
    """The protocol of a server with this crowd."""
    return type("Wire", (Wire,), {"crowd": crowd})


def _peer_uid(transport: asyncio.Transport) -> int | None:
    """The user at the other end of a Unix socket; None for another kind of connection."""
    peer = transport.get_extra_info("socket")
    if peer is None or peer.family != socket.AF_UNIX:
        return None
    told = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(told)[1])


def _body(problem: HttpProblem) -> bytes:
    return to_json(body_of(problem, "", ""))


def _heads(problem: HttpProblem) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(_body(problem))).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
    ]
