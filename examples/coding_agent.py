"""A coding agent whose client and MCP server die in the middle of a command. The next pair has its result.

    pip install 'perdure[mcp]'
    python examples/coding_agent.py

It uses a store in a folder of its own, and ends what it has started.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

COMMAND = "cd /usr; X=kept; for n in 1 2 3 4 5; do echo line $n; sleep 0.3; done"


def server(folder: str) -> StdioServerParameters:
    env = {**os.environ, "PERDURE_URL": f"sqlite://{folder}/perdure.db"}
    return StdioServerParameters(command=sys.executable, args=["-m", "perdure", "mcp"], env=env)


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    return (await client.call_tool(tool, arguments)).structured_content


async def first(folder: str) -> None:
    async with Client(server(folder)) as client:
        await call(client, "save_state", state={"goal": "count", "next": "read the output of `count`"})
        await call(client, "run_command", command=COMMAND, command_id="count", wait_seconds=0.5)
        print("the first agent dies", flush=True)
        os._exit(9)  # with the command half-way; its server finds that its client is gone


async def second(folder: str) -> None:
    async with Client(server(folder)) as client:
        found = await call(client, "where_was_i")
        print("the second agent knows:", found["state"])
        ran = await call(client, "read_output", command_id="count", wait_seconds=30)
        print(ran["output"], end="")
        after = await call(client, "run_command", command="echo $X in $PWD", wait_seconds=10)
        print(after["output"], end="")


def main() -> None:
    if len(sys.argv) > 1:
        asyncio.run(first(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, __file__, folder], check=False)
        asyncio.run(second(folder))
        store = f"sqlite://{folder}/perdure.db"
        subprocess.run(
            [sys.executable, "-m", "perdure", "keep", "stop", "--units", "--store", store],
            check=False,
            capture_output=True,
        )


if __name__ == "__main__":
    main()
