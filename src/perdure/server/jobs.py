"""Work that takes longer than a request: begun by one, looked at and stopped by others.

A job runs in a thread of the server that began it, and what it has come to is kept in the store, so that every server
of the store can tell. A job whose server has died is told as failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from perdure._ground.bridge import drive
from perdure._ground.encoding.json_values import plain
from perdure._ground.ids import is_uid, new_uid
from perdure._tasks import Kept, UpkeepStep
from perdure.errors import PerdureError
from perdure.server.credentials import Vault
from perdure.server.http import Answer, Caller, HttpProblem, Scope, from_exception

log = logging.getLogger("perdure.server")
Json = Any
JobState = Literal["running", "done", "failed", "stopped"]
_LOOK = 0.5  # seconds between two looks at how far a job has come
_DEAD_AFTER = 30_000  # milliseconds without a look, after which its server is taken for dead
_KEPT_FOR = 7 * 24 * 3600 * 1000  # milliseconds
_MOST = 4  # jobs of one namespace at a time
_SWEEP = 20


class Job(Struct, frozen=True, kw_only=True):
    """A job as it is shown."""

    id: str
    verb: str
    state: JobState
    done: int  # steps so far
    total: int | None  # None: it is not known
    say: str
    result: Json = None  # once it has ended


class KeptJob(Struct, frozen=True, kw_only=True):
    """A job as it is stored."""

    job: Job
    namespace: str
    scope: str
    seen_at: int
    is_to_stop: bool = False


class Progress:
    """The progress of a job, written by its thread and read by the loop."""

    def __init__(self) -> None:
        self.done = 0
        self.total: int | None = None
        self.say = ""
        self.is_to_stop = False

    def tell(self, step: UpkeepStep) -> bool:
        """The callback of upkeep after each step; False stops it."""
        self.done += 1
        self.say = f"{step.part}: {step.done:,}"
        return not self.is_to_stop


Work = Callable[[Progress], Coroutine[Any, Any, Json]]


class Jobs:
    """The jobs of a store's servers."""

    def __init__(self, vault: Vault) -> None:
        self._shelf = vault.shelf("job", KeptJob)
        self._clock = vault.clock
        self._running: dict[str, tuple[str, asyncio.Task[None], Progress]] = {}

    async def begin(self, caller: Caller, scope: Scope, verb: str, work: Work) -> Answer:
        """Begin a job; the answer says where to look. `work` awaits only what the library gives: it runs in a thread.

        Raises:
            HttpProblem: as many jobs as may be are running for this namespace.
        """
        if sum(namespace == caller.namespace for namespace, _, _ in self._running.values()) >= _MOST:
            raise HttpProblem(
                429,
                "too_many_jobs",
                f"{_MOST} jobs are running already",
                do="wait until one has ended, or stop one",
                headers={"Retry-After": "5"},
            )
        now = self._clock.now_ms()
        for old in await self._shelf.due(now, limit=_SWEEP):
            await self._shelf.drop(old)
        job = Job(id=new_uid(now), verb=verb, state="running", done=0, total=None, say="")
        kept = KeptJob(job=job, namespace=caller.namespace, scope=scope, seen_at=now)
        await self._shelf.add(job.id, kept, due_at=now + _KEPT_FOR)
        progress = Progress()
        task = asyncio.create_task(self._carry_out(job, work, progress))
        self._running[job.id] = (caller.namespace, task, progress)
        return Answer(job, 202, headers={"Location": f"/v1/jobs/{job.id}"})

    async def get(self, caller: Caller, id: str) -> Job:
        """
        Raises:
            HttpProblem: there is no such job here, or its scope is not the caller's.
        """
        kept = (await self._existing(caller, id)).value
        is_lost = kept.job.state == "running" and self._clock.now_ms() - kept.seen_at > _DEAD_AFTER
        if is_lost and id not in self._running:
            say = "its server has ended; what was done stays done, and a new job does the rest"
            return replace(kept.job, state="failed", say=say)
        return kept.job

    async def stop(self, caller: Caller, id: str) -> Job:
        """Have a job stop at its next step. One that has ended stays as it is."""
        kept = await self._existing(caller, id)
        if kept.value.job.state == "running":
            if id in self._running:
                self._running[id][2].is_to_stop = True
            await self._change(id, lambda now: replace(now, is_to_stop=True))
        return (await self._existing(caller, id)).value.job

    async def _existing(self, caller: Caller, id: str) -> Kept[KeptJob]:
        kept = await self._shelf.get(id) if is_uid(id) else None
        if kept is None or kept.value.namespace != caller.namespace:
            raise HttpProblem(404, "not_found", "there is no such job", do="jobs are kept for 7 days")
        if kept.value.scope not in caller.scopes:
            raise HttpProblem(
                403, "not_allowed", f"this needs the scope {kept.value.scope}", do="use a key that has it"
            )
        return kept

    async def _carry_out(self, job: Job, work: Work, progress: Progress) -> None:
        doing = asyncio.create_task(asyncio.to_thread(lambda: drive(work(progress))))
        try:
            while not (await asyncio.wait({doing}, timeout=_LOOK))[0]:
                await self._look(job.id, progress)
            ended = _ended(job, doing, progress)
        except Exception:  # the store is away: the job itself may well have done its work
            log.exception("job %s cannot be followed", job.id)
            with contextlib.suppress(Exception):
                await doing
            ended = _ended(job, doing, progress)
        try:
            await self._change(job.id, lambda kept: replace(kept, job=ended))
        except PerdureError as error:
            log.warning("the end of job %s cannot be kept: %s", job.id, error.what)
        finally:
            self._running.pop(job.id, None)

    async def _look(self, id: str, progress: Progress) -> None:
        now = self._clock.now_ms()
        told: dict[str, Any] = {"done": progress.done, "total": progress.total, "say": progress.say}
        kept = await self._change(id, lambda kept: replace(kept, job=replace(kept.job, **told), seen_at=now))
        progress.is_to_stop = progress.is_to_stop or kept.is_to_stop

    async def _change(self, id: str, change: Callable[[KeptJob], KeptJob]) -> KeptJob:
        due = self._clock.now_ms() + _KEPT_FOR

        def make(kept: KeptJob | None) -> tuple[KeptJob, int | None]:
            assert kept is not None
            return change(kept), due

        return await self._shelf.update(id, make)

    async def close(self) -> None:
        """Have all jobs of this server stop at their next step, and wait until they have."""
        for _, _, progress in self._running.values():
            progress.is_to_stop = True
        await asyncio.gather(*(task for _, task, _ in self._running.values()), return_exceptions=True)


def _ended(job: Job, doing: asyncio.Task[Json], progress: Progress) -> Job:
    told: dict[str, Any] = {"done": progress.done, "total": progress.total, "say": progress.say}
    error = doing.exception()
    if error is not None:
        problem = from_exception(error)
        if problem.code == "defect":
            log.error("job %s (%s) failed", job.id, job.verb, exc_info=error)
        return replace(job, state="failed", **{**told, "say": problem.detail}, result={"code": problem.code})
    state: JobState = "stopped" if progress.is_to_stop else "done"
    return replace(job, state=state, **told, result=plain(doing.result()))
