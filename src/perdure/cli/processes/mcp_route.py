"""The MCP server's place in `perdure serve`: POST /mcp, for callers that the server knows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from perdure.server import Ask, Raw, Route, Streamed


def mcp_routes() -> list[Route]:
    """The route, if the extra `mcp` is installed."""
    if find_spec("mcp") is None:
        return []
    does = "One request of the Model Context Protocol, answered by itself; each tool needs scopes of its own."
    return [Route(method="POST", path="/mcp", handler=_answer, does=does, who="anyone", body=Raw, streams=True)]


async def _answer(ask: Ask[Any, Any]) -> Streamed:
    assert ask.content is not None
    body = b"".join([chunk async for chunk in ask.content])
    mcp = await asyncio.to_thread(_loaded)  # a second the first time, in which other requests go on
    reply = await mcp.answer_request(ask.app, ask.caller.scopes, ask.headers, body)
    return Streamed(_whole(reply.body), media=reply.media, status=reply.status)


def _loaded() -> Any:
    import_module("mcp.server.streamable_http_manager")
    return import_module("perdure.mcp")


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body
