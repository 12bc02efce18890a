"""Run one command by the MCP server, as a coding agent does. The test kills this process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters


async def main(arguments: dict[str, Any]) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "perdure", "mcp"], env=dict(os.environ))
    async with Client(server) as client:
        await client.call_tool("run_command", arguments)
        await asyncio.get_running_loop().create_future()


asyncio.run(main(json.loads(sys.argv[1])))
