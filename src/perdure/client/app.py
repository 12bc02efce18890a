"""`Perdure("https://…")`: the app whose store is behind a server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from perdure._app import Perdure
from perdure.client.inbox import RemoteInbox
from perdure.client.streams import ServerEvent, listen
from perdure.client.tasks import RemoteTasks
from perdure.client.transport import Transport
from perdure.errors import InvalidInput


class RemotePerdure(Perdure):
    """perdure behind a server. Code runs where the store is: durable functions are started here, never run here."""

    def __init__(self, url: str | Path | None = None, *, key: str | None = None, namespace: str = "default") -> None:
        """`key` is an API key, by default the one in PERDURE_KEY. It decides the namespace."""
        address = str(url if url is not None else os.environ.get("PERDURE_URL", ""))
        self._transport = Transport(address, key if key is not None else os.environ.get("PERDURE_KEY"))
        self.tasks: RemoteTasks = RemoteTasks(self._transport)

    async def stream(self, *topics: str) -> AsyncIterator[ServerEvent]:
        """What changes at the server: `tasks`, `counts`, `task:ID`, `journal:ID`, `units:ID`; see `GET /v1/stream`.

        A broken line is opened again, and what was missed comes then. After `reset`, read again what you show.

        Raises:
            NotAllowed: the key may not listen, or may not any more.
            StoreUnreachable: no server has answered for 45 s.
        """
        async for one in listen(self._transport, "/v1/stream", {"topics": ",".join(topics)}):
            yield one

    @property
    def inbox(self) -> RemoteInbox:
        """Everything that waits for a person: list it, decide it."""
        return RemoteInbox(self._transport)

    async def close(self) -> None:
        await self.tasks._holding.close()
        self._transport.close()

    def __getattribute__(self, name: str) -> Any:
        return _NotHere(name) if name in _NOT_REMOTE else super().__getattribute__(name)


class _NotHere:
    """A part of the app that needs the store itself; it says so when it is used."""

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def __getattr__(self, name: str) -> Any:
        raise InvalidInput(
            f"`app.{self.__dict__['name']}` needs the store itself, and this app reaches it through a server",
            do="use it where the store is; through a server there are app.tasks and its neighbours",
        )

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self.__getattr__("")


_NOT_REMOTE = frozenset(
    {
        "run", "run_until_paused", "start", "handle", "worker", "runtime", "memory", "on", "queue", "schedule",
        "holders", "effects", "kill_switch", "schedules", "triggers", "events", "workers", "units",
        "journal", "checkpoints", "storage", "webhooks",
    }
)  # fmt: skip
