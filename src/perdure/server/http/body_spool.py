"""A raw body kept on disk until it is known whether its request is a repeat, which only the whole of it tells."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator

_PIECE = 256 * 1024  # bytes


class Spool:
    """The body of one request, in a file without a name."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 -- `close` closes it
        self._digest = hashlib.sha256()

    async def take(self, content: AsyncIterator[bytes]) -> None:
        async for piece in content:
            self._digest.update(piece)
            await asyncio.to_thread(self._file.write, piece)
        await asyncio.to_thread(self._file.seek, 0)

    @property
    def digest(self) -> bytes:
        return self._digest.digest()

    async def pieces(self) -> AsyncIterator[bytes]:
        while piece := await asyncio.to_thread(self._file.read, _PIECE):
            yield piece

    def close(self) -> None:
        self._file.close()
