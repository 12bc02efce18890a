"""A Claude Agent SDK session inside a durable function. Kill it at any line it prints, and start it again.

    pip install 'perdure[claude-agent]'
    python examples/claude_agent.py

It pays, and asks before it refunds. Claude Code is the real one that the SDK brings. Its model is a server on loopback,
so that it runs offline. Killed while it pays, it does not pay again by itself: `perdure inbox` shows the question, and
`perdure answer order-7 done` settles it. `perdure approve order-7` allows the refund.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, tool

from perdure import Perdure, durable
from perdure.integrations.claude_agent import DurableClaude


class Model(BaseHTTPRequestHandler):
    """What an API key would pay for: pay, then refund, then an answer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        seen = json.dumps(asked.get("messages"))
        if "It happened" not in seen and "was paid" not in seen:
            says = {"type": "tool_use", "id": "toolu_pay", "name": "mcp__shop__pay", "input": {}}
            how = {"type": "input_json_delta", "partial_json": '{"order": "ord-7"}'}
        elif "was refunded" not in seen:
            says = {"type": "tool_use", "id": "toolu_refund", "name": "mcp__shop__refund", "input": {}}
            how = {"type": "input_json_delta", "partial_json": '{"order": "ord-7"}'}
        else:
            says, how = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Order ord-7 is settled."}
        print("model call:", says.get("name", "the answer"), flush=True)
        why = "tool_use" if says["type"] == "tool_use" else "end_turn"
        start = {"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": says},
            {"type": "content_block_delta", "index": 0, "delta": how},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": why}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        body = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@tool("pay", "Pay for an order", {"order": str})
async def pay(args: dict[str, Any]) -> dict[str, Any]:
    print("paying", flush=True)
    await asyncio.sleep(1)
    print("paid", flush=True)
    return {"content": [{"type": "text", "text": f"{args['order']} was paid"}]}


@tool("refund", "Give money back", {"order": str})
async def refund(args: dict[str, Any]) -> dict[str, Any]:
    print("refunded", flush=True)
    return {"content": [{"type": "text", "text": f"{args['order']} was refunded"}]}


async def main() -> None:
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:  # nothing of your own Claude Code is read or written
        offline = {
            "HOME": home,
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_port}",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        options = ClaudeAgentOptions(env=offline, tools=[], setting_sources=[], model="claude-sonnet-4-5")
        async with Perdure() as app:
            claude = DurableClaude(app, options, tools={"shop": [pay, refund]}, approve=["mcp__shop__refund"])

            @durable
            async def handle_order(order: str) -> str:
                return (await claude.run(f"Settle order {order}.")).result or ""

            stopped = await app.run_until_paused("order-7", handle_order, "ord-7")
            if stopped.is_paused:
                print("waits:", stopped.pause.message if stopped.pause else "")
            else:
                print(stopped.result)


asyncio.run(main())
