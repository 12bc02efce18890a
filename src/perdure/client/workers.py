"""`app.workers` of a server elsewhere."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from perdure._ground.bridge import Nap
from perdure._ground.durations import Duration, require_timedelta
from perdure._worker import QueueRecord, WorkerRecord, Workers
from perdure.client.transport import Transport
from perdure.errors import TimedOut

_LOOK_SECONDS = 0.3


class RemoteWorkers(Workers):
    """The processes that use a store behind a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self) -> Sequence[WorkerRecord]:
        items = (await self._transport.get("/v1/workers")).value["items"]
        return [msgspec.convert(item, WorkerRecord, strict=False) for item in items]

    async def queues(self) -> Sequence[QueueRecord]:
        items = (await self._transport.get("/v1/queues")).value["items"]
        return [msgspec.convert(item, QueueRecord, strict=False) for item in items]

    async def drain(self, ids: Collection[str], *, wait: Duration | None = None) -> Sequence[WorkerRecord]:
        limit = require_timedelta("wait", wait)
        known = {one.id: one for one in await self.list()}
        job = (await self._transport.send("POST", "/v1/workers/drain", {"workers": list(ids)})).value
        if limit is not None:
            await ended(self._transport, job, limit.total_seconds())
        return [known[id] for id in ids if id in known]


async def ended(transport: Transport, job: Any, patience: float | None = None) -> Any:
    """The job, once it has ended.

    Raises:
        TimedOut: it has not, in so many seconds; it goes on.
    """
    end = None if patience is None else time.monotonic() + patience
    while job["state"] == "running":
        if end is not None and time.monotonic() >= end:
            raise TimedOut(
                f"{job['verb']} is not done after {patience:g} s: {job['say']}",
                kept="what was done; the job goes on",
                do=f"GET {transport.url}/v1/jobs/{job['id']} says how far it has come",
            )
        await Nap(_LOOK_SECONDS)
        job = (await transport.get(f"/v1/jobs/{job['id']}")).value
    return job
