"""One MCP request over HTTP, answered by itself: there is no session that could be lost with this process.

Who may ask is decided before: the server that hands requests on checks Host, Origin, keys and scopes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from perdure._app import Perdure
from perdure.mcp.server import USUAL_TASK, make_server

# Headers of a request that mean something to the protocol; no others are handed on.
_TAKEN = ("accept", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id", "last-event-id")
_MOST_BODY = 4 << 20


class HttpReply(NamedTuple):
    """What to send back."""

    status: int
    media: str
    body: bytes


async def answer_request(
    app: Perdure, scopes: Collection[str], headers: Mapping[str, str], body: bytes, task: str = USUAL_TASK
) -> HttpReply:
    """The answer to one POST. `scopes` are what its sender may do."""
    server = make_server(lambda: app, task, scopes)
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    given = [(name.encode(), headers[name].encode("latin-1")) for name in _TAKEN if name in headers]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": None,
        "headers": [*given, (b"host", b"localhost")],
    }
    sent = _Sent(body)
    manager = StreamableHTTPSessionManager(
        app=server, json_response=True, stateless=True, max_request_body_size=_MOST_BODY
    )
    async with manager.run():
        await manager.handle_request(scope, sent.receive, sent.send)
    return HttpReply(sent.status, sent.media, b"".join(sent.parts))


class _Sent:
    """The two ends of one exchange."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self.status, self.media = 500, "application/json"
        self.parts: list[bytes] = []

    async def receive(self) -> dict[str, Any]:
        body, self._body = self._body, None
        if body is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            told = {bytes(name).lower(): bytes(value) for name, value in message.get("headers", ())}
            self.media = told.get(b"content-type", b"application/json").decode("latin-1")
        else:
            self.parts.append(message.get("body", b""))
