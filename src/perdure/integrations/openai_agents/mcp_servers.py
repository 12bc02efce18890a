"""The tools of MCP servers that the SDK calls by itself: listing them is a step, a call is an effect.

A tool that says of itself that it only reads (`readOnlyHint`) is a step.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from agents.mcp import MCPServer
from mcp.types import CallToolResult, Tool
from pydantic import TypeAdapter

import perdure
from perdure.integrations.tool_options import How, options_of

_tools: TypeAdapter[list[Tool]] = TypeAdapter(list[Tool])
_result: TypeAdapter[CallToolResult] = TypeAdapter(CallToolResult)


def recorded_server(server: MCPServer, how: Mapping[str, How]) -> MCPServer:
    """The server with its calls recorded; the connection stays that of the given one."""
    copied = copy.copy(server)
    reads_only: set[str] = set()

    async def list_tools(*args: Any, **kwargs: Any) -> list[Tool]:
        async def ask() -> Any:
            return _tools.dump_python(await server.list_tools(*args, **kwargs), mode="json", by_alias=True)

        found = _tools.validate_python(await perdure.call(ask, name=f"mcp.{server.name}.list_tools"))
        reads_only.update(tool.name for tool in found if _says_it_reads(tool))
        return found

    async def call_tool(tool_name: str, arguments: dict[str, Any] | None, *args: Any, **kwargs: Any) -> CallToolResult:
        async def carry_out(**shown: Any) -> Any:
            done = await server.call_tool(tool_name, arguments, *args, **kwargs)
            return _result.dump_python(done, mode="json", by_alias=True)

        options = options_of(tool_name, how.get(tool_name, "step" if tool_name in reads_only else "effect"))
        if options["kind"] == "plain":
            return await server.call_tool(tool_name, arguments, *args, **kwargs)
        told = await perdure.call(carry_out, name=tool_name, kwargs=arguments or {}, **options)
        if isinstance(told, dict) and "content" in told:
            return _result.validate_python(told)
        text = "It happened. Its result is not known." if told is None else str(told)  # a person settled it
        return _result.validate_python({"content": [{"type": "text", "text": text}]})

    copied.list_tools = list_tools  # type: ignore[method-assign]
    copied.call_tool = call_tool  # type: ignore[method-assign]
    return copied


def _says_it_reads(tool: Tool) -> bool:
    hints = tool.annotations.model_dump(by_alias=True) if tool.annotations is not None else {}
    return hints.get("readOnlyHint") is True
