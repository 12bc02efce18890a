"""`Perdure("https://…")`: the app whose store is behind a server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec

from perdure._app import Perdure
from perdure._durable import DurableFunction, FunctionInfo, Handle
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.encoding.json_values import plain
from perdure._ground.ids import check_id
from perdure._model import Budget
from perdure.client.automation import RemoteEvents, RemoteKillSwitch, RemoteSchedules, RemoteTriggers
from perdure.client.functions import start, take_up
from perdure.client.inbox import RemoteInbox
from perdure.client.past import RemoteCheckpoints, RemoteEffects, RemoteJournal
from perdure.client.requests import path_of
from perdure.client.streams import ServerEvent, listen
from perdure.client.tasks import RemoteTasks
from perdure.client.transport import Transport
from perdure.client.workers import RemoteWorkers
from perdure.errors import InvalidInput
from perdure.types import Situation

if TYPE_CHECKING:
    from perdure._durable import HasUid
    from perdure._tasks import Task


P = ParamSpec("P")
R = TypeVar("R")


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

    async def situation(self, id: str) -> Situation:
        return await self._situation(path_of(id))

    async def situations(self, items: Iterable[HasUid]) -> Mapping[str, Situation]:
        """One request for each task."""
        return {item.uid: await self._situation(f"/v1/tasks/~{item.uid}") for item in items}

    async def _situation(self, address: str) -> Situation:
        found: Situation = msgspec.convert((await self._transport.get(f"{address}/situation")).value, Situation)
        return found

    @property
    def journal(self) -> RemoteJournal:
        """What durable functions have done, call by call."""
        return RemoteJournal(self._transport)

    @property
    def checkpoints(self) -> RemoteCheckpoints:
        """The checkpoints of tasks: listed without what they hold, looked into, compared."""
        return RemoteCheckpoints(self._transport)

    @property
    def effects(self) -> RemoteEffects:
        """The effects with an unknown outcome, and settling them."""
        return RemoteEffects(self._transport)

    @property
    def schedules(self) -> RemoteSchedules:
        """What is started again and again: list, add, pause, resume, remove."""
        return RemoteSchedules(self._transport)

    @property
    def triggers(self) -> RemoteTriggers:
        """What begins, or goes on, when an event is sent in."""
        return RemoteTriggers(self._transport)

    @property
    def events(self) -> RemoteEvents:
        """Where events from outside come in."""
        return RemoteEvents(self._transport)

    @property
    def kill_switch(self) -> RemoteKillSwitch:
        """Stop a task, or all of them, from outside."""
        return RemoteKillSwitch(self._transport)

    @property
    def workers(self) -> RemoteWorkers:
        """The processes that use the store: list them, ask workers to drain."""
        return RemoteWorkers(self._transport)

    async def functions(self) -> Sequence[FunctionInfo]:
        items = (await self._transport.get("/v1/functions")).value["items"]
        return [msgspec.convert(item, FunctionInfo) for item in items]

    async def start_by_name(
        self,
        id: str,
        function: str,
        version: int | None = None,
        arguments: Mapping[str, Any] = {},
        *,
        queue: str = "default",
        priority: int = 0,
        key: str = "",
        budget: Budget | None = None,
        timeout: Duration | None = None,
    ) -> Task:
        limit = require_timedelta("timeout", timeout, is_positive=True)
        body = {
            "id": check_id(id),
            "function": function,
            "version": version,
            "arguments": dict(arguments),
            "queue": queue,
            "priority": priority,
            "key": key or None,
            "budget": None if budget is None else plain(budget),
            "timeout": None if limit is None else limit.total_seconds(),
        }
        reply = await self._transport.send("POST", "/v1/tasks", body)
        return self.tasks._task(reply, created=reply.status == 201)

    async def start(self, id: str, fn: DurableFunction[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """As in this process. Arguments go through the server as JSON, and what JSON cannot hold is refused."""
        handle: Handle[R] = await start(self.tasks, id, fn, args, kwargs)
        return handle

    async def handle(self, id: str, fn: DurableFunction[P, R], /) -> Handle[R]:
        handle: Handle[R] = await take_up(self.tasks, id, fn)
        return handle

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
        "run", "run_until_paused", "worker", "runtime", "memory", "on", "queue", "schedule",
        "holders", "units", "storage", "webhooks",
    }
)  # fmt: skip
