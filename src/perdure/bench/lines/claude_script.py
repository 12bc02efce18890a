"""A program that speaks as Claude Code does to its SDK, for measuring the SDK: three tools at once, then the result.

Run as a script: `claude_script.py TOOLS`. It imports nothing of perdure.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main(tools: int) -> None:
    for line in sys.stdin:
        told = json.loads(line)
        if told["type"] == "control_request":
            response = {"subtype": "success", "request_id": told["request_id"], "response": {}}
            _say({"type": "control_response", "response": response})
            if told["request"]["subtype"] == "initialize":
                hello = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "c", "version": "1"},
                }
                _to_server("hello", {"method": "initialize", "params": hello, "id": "hello"})
        elif told["type"] == "user":
            calls = [
                {"type": "tool_use", "id": str(x), "name": "mcp__shop__look", "input": {"x": x}} for x in range(tools)
            ]
            _say({"type": "assistant", "message": {"role": "assistant", "model": "script", "content": calls}})
            for x in range(tools):
                params = {"name": "look", "arguments": {"x": x}}
                _to_server(f"call-{x}", {"method": "tools/call", "params": params, "id": x})
        elif told["response"]["request_id"].startswith("call-"):
            tools -= 1
            if not tools:
                times = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 2, "session_id": "s"}
                _say({"type": "result", "subtype": "success", "is_error": False, "result": "done", **times})


def _to_server(id: str, message: dict[str, Any]) -> None:
    request = {"subtype": "mcp_message", "server_name": "shop", "message": {"jsonrpc": "2.0", **message}}
    _say({"type": "control_request", "request_id": id, "request": request})


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
