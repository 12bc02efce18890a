"""Workers: which processes use the store, draining them, their queues, and the handlers they call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from perdure._ground.bridge import Nap
from perdure._tasks import handlers_of, store_of
from perdure._worker import QueueRecord, WorkerRecord
from perdure.errors import InvalidInput
from perdure.server.aside import aside
from perdure.server.desk import Desk
from perdure.server.http import Answer, Ask, listed
from perdure.server.jobs import Job, Progress
from perdure.server.shapes.tasks import Listed, Strict
from perdure.server.table import Nothing, Route

_LOOK = 0.3  # seconds between two looks at workers that drain
_MOST = 1000


class Drain(Strict, frozen=True, kw_only=True):
    workers: tuple[str, ...]


class HandlerShown(Struct, frozen=True, kw_only=True):
    """A handler that workers call when something happens to a task."""

    name: str
    event: str
    reason: str | None
    is_in_trouble: bool
    trouble: str | UnsetType = UNSET  # its last error; with `data:read`


async def listing(ask: Ask[Nothing, None]) -> Answer:
    return listed(ask, await ask.app.workers.list())


async def drain(ask: Ask[Nothing, Drain]) -> Answer:
    ids = list(dict.fromkeys(ask.body.workers))
    if not 1 <= len(ids) <= _MOST:
        raise InvalidInput(f"workers has {len(ids)} ids; it has 1 to {_MOST:,}")
    await ask.app.workers.drain(ids)
    return await ask.server.part(Desk).jobs.begin(
        ask.caller, "store:admin", "drain", lambda progress: _until_drained(ask, ids, progress)
    )


async def _until_drained(ask: Ask[Nothing, Drain], ids: Sequence[str], progress: Progress) -> Any:
    """Wait until these workers hold no task. A stop ends the waiting; the workers drain all the same."""
    progress.total = len(ids)
    while True:
        busy = {one.id: one.leases for one in await ask.app.workers.list() if one.id in ids and one.leases}
        progress.done = len(ids) - len(busy)
        progress.say = f"{sum(busy.values())} tasks are still held"
        if not busy or progress.is_to_stop:
            return {"drained": [id for id in ids if id not in busy], "busy": list(busy)}
        await Nap(_LOOK)


async def queues(ask: Ask[Nothing, None]) -> Answer:
    return listed(ask, await aside(ask.app.workers.queues))


async def handlers(ask: Ask[Nothing, None]) -> Answer:
    found = await handlers_of(store_of(ask.app.tasks)).all()
    return listed(
        ask,
        [
            HandlerShown(
                name=kept.key,
                event=kept.value.event,
                reason=kept.value.reason,
                is_in_trouble=bool(kept.value.trouble),
                trouble=kept.value.trouble if ask.caller.reads_data else UNSET,
            )
            for kept in found
        ],
    )


def _list(name: str, does: str, handler: Any, answer: Any) -> Route:
    return Route(method="GET", path=f"/v1/{name}", handler=handler, does=does, scopes=("tasks:read",), answer=answer)


ROUTES = (
    _list("workers", "The processes that use the store, and what they can do.", listing, Listed[WorkerRecord]),
    Route(
        method="POST",
        path="/v1/workers/drain",
        handler=drain,
        does="Ask workers to give their tasks back and end; a job tells when they have.",
        scopes=("store:admin",),
        body=Drain,
        answer=Job,
        status=202,
        once="may",
    ),
    _list("queues", "The queues: their limits, what is worked on, what waits.", queues, Listed[QueueRecord]),
    _list("handlers", "The handlers that are told of events, and their trouble.", handlers, Listed[HandlerShown]),
)
