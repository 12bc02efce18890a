"""`PerdureStorage`: bytes by key in a perdure store, for Strands' own session managers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strands.storage import Storage

import perdure
from perdure._ground.encoding.key_parts import quoted, unquoted
from perdure.errors import InvalidInput

if TYPE_CHECKING:
    from perdure import Perdure


class PerdureStorage(Storage):  # type: ignore[misc]
    """A storage for `SnapshotSessionManager("talk-1", storage=PerdureStorage(app))`.

    A value is on disk when `write` returns. It is for programs that do without durable functions: inside one the
    journal has the conversation, and a snapshot of what is replayed would add it a second time.
    A search reads all values.
    """

    def __init__(self, app: Perdure, root: str = "strands") -> None:
        self._storage, self._root = app.storage, f"{quoted(root)}/"

    async def write(self, key: str, data: bytes) -> None:
        await self._storage.put(self._at(key), data)

    async def read(self, key: str) -> bytes | None:
        found: bytes | None = await self._storage.get(self._at(key))
        return found

    async def delete(self, key: str) -> None:
        await self._storage.delete(self._at(key))

    async def list(self, query: str) -> list[str]:
        found = await self._storage.list(self._at(query))
        return sorted(unquoted(key.removeprefix(self._root)) for key in found)

    def _at(self, key: str) -> str:
        if perdure.current() is not None:
            raise InvalidInput(
                "PerdureStorage is used inside a durable function",
                do='keep the conversation there with DurableAgent(…, app=app, session="…")',
            )
        return self._root + quoted(key)
