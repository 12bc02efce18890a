"""An overview of all tasks of a namespace, cached for a second, because several pages and tabs ask for it at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from perdure._durable import Unfinished, unfinished

if TYPE_CHECKING:
    from perdure._app import Perdure

KEPT_SECONDS = 1.0


class Overviews:
    """The overviews of the apps of a server."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[Perdure, dict[bool, asyncio.Task[Unfinished]]] = WeakKeyDictionary()

    async def of(self, app: Perdure, *, tells_data: bool) -> Unfinished:
        """The overview, at most one second old. Callers that ask meanwhile share one query."""
        kept = self._kept.setdefault(app, {})
        look = kept.get(tells_data)
        if look is None:
            loop = asyncio.get_running_loop()
            look = kept[tells_data] = loop.create_task(unfinished(app.tasks, tells_data=tells_data))
            look.add_done_callback(lambda _: loop.call_later(KEPT_SECONDS, kept.pop, tells_data, None))
        return await asyncio.shield(look)
