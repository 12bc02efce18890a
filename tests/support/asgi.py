"""Send one request straight to an ASGI application: no socket, no client library in between."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


async def send_to(
    server: Any, method: str, path: str, *, query: str = "", body: bytes = b"", headers: Mapping[str, str] | None = None
) -> tuple[int, Any]:
    """The status, and the JSON of the answer's body. In names of headers, `_` stands for `-`."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in (headers or {}).items()]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": lines}
    await server({**scope, "query_string": query.encode(), "client": ("127.0.0.1", 1)}, receive, send)
    text = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(text) if text else None
