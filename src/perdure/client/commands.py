"""What the command line asks a server for beside the verbs of the app."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from perdure._runtime import RestorePlan
from perdure._tasks import Task
from perdure.client.problems import error_of
from perdure.client.requests import address_of
from perdure.client.task import RemoteTask
from perdure.client.transport import Transport
from perdure.client.workers import ended

Json = Any


async def finish_job(transport: Transport, path: str, body: Json = None) -> Any:
    """The result of a job, once it has ended.

    Raises:
        PerdureError: it has failed; as the library would have raised it.
    """
    job = await ended(transport, (await transport.send("POST", path, body)).value)
    if job["state"] == "failed":
        code = (job["result"] or {}).get("code", "store_unavailable")
        raise error_of(_STATUSES.get(code, 409), {"code": code, "detail": job["say"]}, transport.url)
    return job["result"]


_STATUSES = {"not_found": 404, "invalid_input": 422, "store_unavailable": 503}


async def resume(
    task: Task,
    *,
    state: Mapping[str, Json],
    checkpoint: str | None,
    instruction: str | None,
    anyway: bool,
) -> None:
    """Resume a task; unless `anyway`, the server refuses when the world around it has changed.

    Raises:
        Incompatible: it has.
    """
    assert isinstance(task, RemoteTask)
    body = {"state": dict(state) or None, "checkpoint": checkpoint, "instruction": instruction, "anyway": anyway}
    await task._steer("resume", body, None, is_matched=bool(state) or checkpoint is not None)


async def restore_plan(task: Task, checkpoint: str | None) -> RestorePlan:
    """What a resume would bring back."""
    assert isinstance(task, RemoteTask)
    reply = await task._transport.get(f"{address_of(task)}/plan", checkpoint=checkpoint)
    return msgspec.convert(reply.value, RestorePlan, strict=False)
