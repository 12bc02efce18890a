"""Make calls of the MCP server, as a coding agent does, and stay. The test kills this process.

With an address and a key the server is asked over HTTP, else it is started.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def call_and_stay(server: Any, calls: list[tuple[str, dict[str, Any]]]) -> None:
    async with Client(server) as client:
        print("connected", flush=True)
        for tool, arguments in calls:
            await client.call_tool(tool, arguments)
        await asyncio.get_running_loop().create_future()


async def main(calls: list[tuple[str, dict[str, Any]]], url: str = "", key: str = "") -> None:
    if not url:
        command = StdioServerParameters(command=sys.executable, args=["-m", "perdure", "mcp"], env=dict(os.environ))
        await call_and_stay(command, calls)
        return
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=120) as http:
        await call_and_stay(streamable_http_client(url, http_client=http), calls)


asyncio.run(main(json.loads(sys.argv[1]), *sys.argv[2:]))
