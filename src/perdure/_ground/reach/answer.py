"""Read the answer of an HTTP/1.1 server that is not trusted: bounded lines, bounded body, nothing decompressed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

_MOST_LINE, _MOST_LINES, _MOST_INTERIM = 8192, 100, 5
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [^\r\n]*)?")


class Unreadable(Exception):
    """The answer is not HTTP, or larger than the limit. `status` is None if not even that was readable."""

    def __init__(self, what: str, status: int | None = None) -> None:
        super().__init__(what)
        self.status = status


async def read_answer(reader: asyncio.StreamReader, limit: int) -> tuple[int, Mapping[str, str], bytes]:
    """The status, the headers (names in lower case) and the body.

    Raises:
        Unreadable: it is not an answer, or its body is larger than `limit`.
        EOFError, OSError: the connection ended before the answer did.
    """
    for _ in range(_MOST_INTERIM):
        status, headers = await _head(reader)
        if status >= 200:
            return status, headers, await _body(reader, status, headers, limit)
    raise Unreadable("it answers with nothing but interim statuses")


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    found = _STATUS.fullmatch(await _line(reader))
    if found is None:
        raise Unreadable("the answer is not HTTP")
    status = int(found[1])
    headers: dict[str, str] = {}
    for _ in range(_MOST_LINES):
        line = await _line(reader)
        if not line:
            return status, headers
        name, colon, value = line.partition(b":")
        if not colon:
            raise Unreadable("the answer has a header without a name", status)
        headers[name.decode("latin-1").strip().lower()] = value.decode("latin-1").strip()
    raise Unreadable(f"the answer has more than {_MOST_LINES} headers", status)


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        raise Unreadable("the answer has a line without end") from None
    if len(line) > _MOST_LINE:
        raise Unreadable("the answer has a line without end")
    return line.rstrip(b"\r\n")


async def _body(reader: asyncio.StreamReader, status: int, headers: Mapping[str, str], limit: int) -> bytes:
    if status in (204, 304):
        return b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _chunked(reader, status, limit)
    length = headers.get("content-length")
    if length is None:
        return await _until_end(reader, status, limit)
    if not length.isdecimal() or len(length) > 18:
        raise Unreadable("the answer has no sound Content-Length", status)
    if int(length) > limit:
        raise Unreadable(_too_large(limit), status)
    return await reader.readexactly(int(length))


async def _until_end(reader: asyncio.StreamReader, status: int, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := await reader.read(8192):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise Unreadable(_too_large(limit), status)
    return b"".join(parts)


async def _chunked(reader: asyncio.StreamReader, status: int, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        line = (await _line(reader)).partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", line):
            raise Unreadable("the answer's chunks are not readable", status)
        length = int(line, 16)
        if not length:
            return b"".join(parts)
        size += length
        if size > limit:
            raise Unreadable(_too_large(limit), status)
        parts.append(await reader.readexactly(length))
        await _line(reader)


def _too_large(limit: int) -> str:
    return f"the answer is larger than {limit // 1024} kB"
