"""`task.frames` of a server elsewhere: interrupted lines of thought can be read and dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from perdure._ground.ids import check_id
from perdure._model import Frame, Gone
from perdure._tasks import TaskFrames
from perdure.client.transport import Transport
from perdure.errors import InvalidInput


class RemoteFrames(TaskFrames):
    """The frames of a task behind a server."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport, self._path = transport, f"{path}/frames"

    async def open(self) -> Sequence[Frame]:
        return [msgspec.convert(one, Frame) for one in (await self._transport.get(self._path)).value["frames"]]

    async def gone(self) -> Sequence[Gone]:
        return [msgspec.convert(one, Gone) for one in (await self._transport.get(self._path)).value["gone"]]

    async def drop(self, name: str, *, why: str) -> None:
        path = f"{self._path}/{quote(check_id(name), safe='')}"
        await self._transport.send("DELETE", path, query={"why": why})

    async def _update(self, change: Any) -> Any:
        raise InvalidInput(
            "a line of thought is set aside by the process that has it", do="use task.frames where the store is"
        )
