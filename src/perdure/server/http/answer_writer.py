"""Write an answer to the connection: its headers, and a body, a problem or a stream.

Owns the headers that every answer carries, gzip, and `304 Not Modified`. What to answer is decided in pipeline.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from perdure._ground import crash_points as crash
from perdure.server.http.answer_bytes import encode, to_json
from perdure.server.http.incoming import Incoming
from perdure.server.http.problems import HttpProblem, body_of
from perdure.server.http.requests import Answer, Streamed

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; sandbox; frame-ancestors 'none'"),
)


class AnswerWriter:
    """The answer to one request, on its way out."""

    def __init__(self, request: Incoming, receive: Callable[[], Any], send: Callable[[dict[str, Any]], Any]) -> None:
        self._request, self._receive, self._send_message = request, receive, send
        self._is_head = request.method == "HEAD"
        self._began = time.perf_counter()
        self.status = 0
        self.sent = 0  # bytes of the body
        self.has_begun = False  # the status is out, so nothing else can be answered

    @property
    def took_ms(self) -> float:
        return (time.perf_counter() - self._began) * 1000

    async def write(self, answer: Answer) -> None:
        headers = dict(answer.headers)
        if answer.value is not None:
            headers.setdefault("Content-Type", "application/json")
        status, body = answer.status, b""
        if answer.etag is not None:
            headers["ETag"] = answer.etag
            if status == 200 and _is_known(answer.etag, self._request.headers.get("if-none-match")):
                status = 304
        if answer.value is not None and status != 304:
            encoded = (answer.value, self._request.headers.get("accept-encoding", ""))
            body, is_squeezed = await asyncio.to_thread(encode, *encoded) if answer.is_large else encode(*encoded)
            if is_squeezed:
                headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
        await self._send(status, headers, body)

    async def write_problem(self, problem: HttpProblem, instance: str) -> None:
        """`instance` is the path of the route, or empty."""
        body = to_json(body_of(problem, self._request.request_id, instance))
        await self._send(problem.status, {"Content-Type": "application/problem+json", **problem.headers}, body)

    async def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        lines = [*self._heads(headers)]
        if status not in (204, 304):
            lines.append((b"content-length", str(len(body)).encode()))
        self.status, self.has_begun = status, True
        await self._send_message({"type": "http.response.start", "status": status, "headers": lines})
        body = b"" if self._is_head or status in (204, 304) else body
        self.sent += len(body)
        crash.place("server.answering")
        await self._send_message({"type": "http.response.body", "body": body})

    async def write_stream(self, answer: Streamed) -> None:
        headers = {"Content-Type": answer.media, **answer.headers}
        self.status, self.has_begun = answer.status, True
        chunks = answer.chunks
        try:
            lines = self._heads(headers)
            await self._send_message({"type": "http.response.start", "status": answer.status, "headers": lines})
            if self._is_head or await self._send_chunks(chunks):
                await self._send_message({"type": "http.response.body", "body": b""})
        finally:
            if (close := getattr(chunks, "aclose", None)) is not None:
                await close()

    async def _send_chunks(self, chunks: AsyncIterator[bytes]) -> bool:
        """Send all of them; False when the client went away first."""
        sending = asyncio.ensure_future(self._send_each(chunks))
        leaving = asyncio.ensure_future(self._leave())
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
                return True
            return False
        finally:
            for one in (sending, leaving):
                one.cancel()
            await asyncio.wait({sending, leaving})

    async def _send_each(self, chunks: AsyncIterator[bytes]) -> None:
        async for chunk in chunks:
            self.sent += len(chunk)
            await self._send_message({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _leave(self) -> None:
        """Returns when the client has gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _heads(self, headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        given = {name.lower().encode("latin-1"): value.encode("latin-1", "replace") for name, value in headers.items()}
        own = {
            **dict(_HEADERS),
            b"perdure-request-id": self._request.request_id.encode(),
            b"server-timing": f"total;dur={self.took_ms:.1f}".encode(),
        }
        return list({**own, **given}.items())


def _is_known(etag: str, seen: str | None) -> bool:
    return seen is not None and (seen.strip() == "*" or etag in [tag.strip() for tag in seen.split(",")])
