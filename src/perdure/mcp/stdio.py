"""One MCP client on stdin and stdout.

The library says nothing to a line that it cannot read, and a client waits for the answer until its own limit. Here each
such line is answered with an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from perdure._app import Perdure
from perdure.mcp.server import USUAL_TASK, make_server

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

_MOST_SAID = 300
_ANSWERS = {"result", "error"}


async def serve_stdio(open_app: Callable[[], Perdure], task: str = USUAL_TASK) -> None:
    """Serve one client on stdin and stdout until it leaves. What it started goes on."""
    server = make_server(open_app, task)
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(_Readable(read, write), write, server.create_initialization_options())


class _Readable:
    """The stream of a client's messages, without the lines that are not messages."""

    def __init__(self, read: Any, write: Any) -> None:
        self._read, self._write = read, write

    @property
    def last_context(self) -> Any:
        return getattr(self._read, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        while isinstance(item := await self._read.receive(), Exception):
            if (reply := _refusal(item)) is not None:
                await self._write.send(reply)
        message: SessionMessage = item
        return message

    def __aiter__(self) -> _Readable:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await self._read.aclose()

    async def __aenter__(self) -> _Readable:
        await self._read.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> bool | None:
        closed: bool | None = await self._read.__aexit__(*problem)
        return closed


def _refusal(problem: Exception) -> SessionMessage | None:
    """The answer to a line; None if it asks for none: an empty one, a notification, or an answer to us."""
    from mcp.shared.message import SessionMessage
    from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
    from pydantic import ValidationError

    if not isinstance(problem, ValidationError):
        return SessionMessage(
            JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=PARSE_ERROR, message="no JSON"))
        )
    errors = problem.errors(include_url=False, include_context=False)
    is_json = all(error["type"] != "json_invalid" for error in errors)
    lines = [error["input"] for error in errors if isinstance(error["input"], str)]
    if not is_json and not any(line.strip() for line in lines):
        return None
    whole = next(_objects(errors), None)
    if is_json and whole is not None and ("id" not in whole or ("method" not in whole and _ANSWERS & whole.keys())):
        return None
    id = whole.get("id") if whole is not None else None
    told = f"{'not a request' if is_json else 'not JSON'}: {errors[0]['msg']}"[:_MOST_SAID]
    error = ErrorData(code=INVALID_REQUEST if is_json else PARSE_ERROR, message=told)
    known = id if isinstance(id, str) or type(id) is int else None
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=known, error=error))


def _objects(errors: Any) -> Iterator[dict[str, Any]]:
    """The message, as far as it can be read after all: it may only be too deep, or have half of a character."""
    for error in errors:
        found = error["input"]
        if error["type"] == "json_invalid":
            try:
                found = json.loads(found)
            except (ValueError, RecursionError):
                continue
        elif error["type"] != "missing":  # then it is a part of the message
            continue
        if isinstance(found, dict):
            yield found
