"""A server without sockets: requests straight to its ASGI application, with the headers a client would send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from perdure.server import Server, Settings, make_app
from perdure.server.credentials import scopes_of

HOST = "127.0.0.1:7420"


class Reply(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    @property
    def code(self) -> str:
        return str(self.json["code"])


async def request(
    server: Any,
    method: str,
    path: str,
    *,
    query: str = "",
    body: Any = None,
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    key: str | None = None,
    address: str = "127.0.0.1",
    peer_uid: int | None = None,
) -> Reply:
    """Send one request. `body` is sent as JSON, unless it is bytes. A Host is added unless one is given."""
    lines = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    names = {name.lower() for name, _ in lines}
    if "host" not in names:
        lines.append(("host", HOST))
    if key is not None:
        lines.append(("authorization", f"Bearer {key}"))
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    if content and "content-type" not in names:
        lines.append(("content-type", "application/json"))
    sent: list[dict[str, Any]] = []

    bodies = [content]

    async def receive() -> dict[str, Any]:
        if not bodies:
            await asyncio.Event().wait()  # the client stays, and sends nothing more
        return {"type": "http.request", "body": bodies.pop()}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in lines],
        "client": (address, 50_000),
        "extensions": {} if peer_uid is None else {"perdure.peer": {"uid": peer_uid}},
    }
    await server(scope, receive, send)
    told = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return Reply(sent[0]["status"], told, b"".join(message.get("body", b"") for message in sent))


@asynccontextmanager
async def serving(url: str, **settings: Any) -> AsyncIterator[Server]:
    server = make_app(url, Settings(**settings))
    try:
        yield server
    finally:
        await server.close()


async def make_key(server: Server, *scopes: str, namespace: str = "default", name: str = "test") -> str:
    return (await server.desk.keys.make(name, scopes, namespace)).text


async def make_session(server: Server, *scopes: str, is_local: bool = False) -> str:
    """The value of the header Cookie."""
    code = await server.desk.sessions.make_link("ada", scopes_of(scopes), is_local=is_local)
    begun = await server.desk.sessions.begin(code)
    assert begun is not None
    return f"perdure-7420={begun.cookie}"
