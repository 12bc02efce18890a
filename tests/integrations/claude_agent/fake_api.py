"""A Messages API on loopback for the real CLI. Its model is naive: it calls a tool until it has seen its result."""

from __future__ import annotations

import http.server
import json
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Asked = Callable[[str], int | None]  # told which call of the model it is; the moment of a limit's reset, or None
Script = Sequence[tuple[str, dict[str, Any], Sequence[str]]]
SCRIPT: Script = (  # the tool, its arguments, and the words by which the model knows how it ended
    ("look", {"x": 1}, ("seen 1",)),
    ("pay", {"cents": 5}, ("paid", "It happened.")),
    ("refund", {"cents": 5}, ("refunded", "rejected")),
)


def next_of(conversation: str, script: Script) -> tuple[str, dict[str, Any]] | None:
    for tool, args, words in script:
        if not any(word in conversation for word in words):
            return tool, args
    return None


@contextmanager
def fake_api(asked: Asked, script: Script = SCRIPT) -> Iterator[str]:
    """Its address. `asked` is called in each request, before it is answered."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._send(404, b"{}")

        do_HEAD = do_GET

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            if not self.path.split("?")[0].endswith("/messages"):
                self._send(200, b'{"input_tokens": 10}')
                return
            wanted = next_of(json.dumps(body["messages"], ensure_ascii=False), script)
            resets_at = asked("end" if wanted is None else wanted[0])
            if resets_at is not None:
                self._refuse(resets_at)
            else:
                self._send(200, _events(body, wanted), "text/event-stream")

        def _refuse(self, resets_at: int) -> None:
            error = {"type": "error", "error": {"type": "rate_limit_error", "message": "the limit is reached"}}
            unified = {"status": "rejected", "reset": resets_at, "representative-claim": "five_hour"}
            more = {f"anthropic-ratelimit-unified-{name}": str(value) for name, value in unified.items()}
            self._send(429, json.dumps(error).encode(), **more)

        def _send(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
            self.send_response(status)
            for name, value in {"content-type": kind, "content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _events(body: dict[str, Any], wanted: tuple[str, dict[str, Any]] | None) -> bytes:
    if wanted is None:
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": "done"}
    else:
        block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", "name": f"mcp__shop__{wanted[0]}", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(wanted[1])}
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": body.get("model")}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    why = {"stop_reason": "end_turn" if wanted is None else "tool_use", "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": why, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()
