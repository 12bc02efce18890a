"""Ask a server as a caller with some scopes, without credentials, sockets and a guard."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from perdure.server import Caller, make_app
from perdure.server.credentials import scopes_of
from tests.support.asgi import send_to

ALL = frozenset(scopes_of(["admin"]))


class Known:
    """Takes every request for one of the same caller."""

    def __init__(self, scopes: frozenset[str], namespace: str = "default") -> None:
        self.caller = Caller(namespace, scopes, "ada", "key", "k1")

    async def identify(self, request: Any, route: Any) -> Caller:
        return self.caller


@asynccontextmanager
async def serving(url: str, scopes: frozenset[str] = ALL, namespace: str = "default") -> AsyncIterator[Any]:
    """A function that asks: `status, value = await ask("GET", "/v1/tasks")`."""
    server = make_app(url)
    server._guard, server._identity = None, Known(scopes, namespace)

    async def ask(method: str, path: str, body: Any = None, *, query: str = "", **headers: str) -> tuple[int, Any]:
        raw = b"" if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"content_type": "application/json"}
        return await send_to(server, method, path, query=query, body=raw, headers={**kind, **headers})

    try:
        yield ask
    finally:
        await server.close()
