"""Every lifecycle call, each as one write: what goes before it, the call, and how a task is carried on.

`prepare` leaves the task such that `act` is a single transaction: an attempt's verb finds its lease taken.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from perdure import Perdure
from perdure._ground.bridge import drive
from perdure._tasks import leases
from perdure.types import Task

ID = "the-task"
# More than one row holds, so that its parts go ahead of it.
_LARGE = random.Random(7).randbytes(1_300_000).hex()


@dataclass(frozen=True)
class Verb:
    name: str
    prepare: Callable[[Perdure], Coroutine[Any, Any, Task | None]]
    act: Callable[[Perdure, Any], Coroutine[Any, Any, object]]


VERBS: dict[str, Verb] = {}


_Prepare = Callable[[Perdure], Coroutine[Any, Any, Task | None]]


def _verb(prepare: _Prepare) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(act: Callable[..., Any]) -> Callable[..., Any]:
        name = act.__name__.removeprefix("_")
        VERBS[name] = Verb(name, prepare, act)
        return act

    return keep


# ── before the call ──────────────────────────────────────────────────────────────────────────────


async def _nothing(app: Perdure) -> None:
    await app.tasks.create("another", state={})


async def _new(app: Perdure) -> Task:
    return await app.tasks.create(ID, state={"n": 0})


async def _held(app: Perdure) -> Task:
    task = await _new(app)
    await task.checkpoint({"n": 1, "list": list(range(50))})
    await task.checkpoint({"n": 2, "list": list(range(51))})
    return task


async def _paused(app: Perdure) -> Task:
    task = await _held(app)
    await task.pause("look at it", reason="human_approval")
    return task


async def _failed(app: Perdure) -> Task:
    task = await _held(app)
    await task.fail({"message": "broke", "tests": ["a", "b"]})
    return task


async def _completed(app: Perdure) -> Task:
    task = await _held(app)
    await task.complete({"answer": 42})
    return task


async def _registered(app: Perdure) -> Task:
    other = await app.tasks.create("another", state={})
    await other.checkpoint({"n": 1})
    return await _new(app)


# ── the calls ────────────────────────────────────────────────────────────────────────────────────


@_verb(_nothing)
async def _create(app: Perdure, _: None) -> None:
    await app.tasks.create(ID, state={"n": 0, "files": ["a", "b"]}, name="A task", tags={"team": "x"})


@_verb(_nothing)
async def _open(app: Perdure, _: None) -> None:
    assert (await app.tasks.open(ID, state={"n": 0})).created


@_verb(_completed)
async def _open_again(app: Perdure, _: Task) -> None:
    assert (await app.tasks.open(ID, state={"n": 0}, again=True)).created


@_verb(_registered)
async def _begin_attempt(app: Perdure, task: Task) -> None:
    await leases.take(app._store, task.id, task.uid, "")


@_verb(_held)
async def _end_attempt(app: Perdure, task: Task) -> None:
    hold = leases.held(app._store, task.uid)
    assert hold is not None
    await leases.release(app._store, hold, "released")


@_verb(_held)
async def _checkpoint(_: Perdure, task: Task) -> None:
    await task.checkpoint({"n": 3, "list": list(range(52))}, label="third", plan=["on", "and", "on"])


@_verb(_held)
async def _large_checkpoint(_: Perdure, task: Task) -> None:
    await task.checkpoint({"n": 3, "text": _LARGE})


@_verb(_held)
async def _mark_progress(_: Perdure, task: Task) -> None:
    await task.mark_progress("copy", done=15, total=42)


@_verb(_held)
async def _pause(_: Perdure, task: Task) -> None:
    await task.pause("enough for today", reason="checkpoint")


@_verb(_held)
async def _pause_with_checkpoint(_: Perdure, task: Task) -> None:
    await task.pause("look at it", reason="human_approval", checkpoint={"n": 3, "list": list(range(60))})


@_verb(_paused)
async def _resume(_: Perdure, task: Task) -> None:
    await task.resume()


@_verb(_paused)
async def _resume_with_state(_: Perdure, task: Task) -> None:
    await task.resume(state={"approved": True})


@_verb(_failed)
async def _resume_from_checkpoint(_: Perdure, task: Task) -> None:
    await task.resume(checkpoint="1", state={"approved": True})


@_verb(_held)
async def _complete(_: Perdure, task: Task) -> None:
    await task.complete({"answer": 42})


@_verb(_held)
async def _fail(_: Perdure, task: Task) -> None:
    await task.fail({"message": "broke", "tests": ["a", "b"]})


@_verb(_held)
async def _cancel(_: Perdure, task: Task) -> None:
    await task.cancel()


@_verb(_held)
async def _rollback(_: Perdure, task: Task) -> None:
    await task.rollback("1")


@_verb(_held)
async def _fork(_: Perdure, task: Task) -> None:
    await task.fork("its-fork", set={"n": 100})


@_verb(_held)
async def _invalidate(_: Perdure, task: Task) -> None:
    assert await task.invalidate_if(lambda checkpoint: checkpoint.seq == 2)


@_verb(_held)
async def _pin(_: Perdure, task: Task) -> None:
    await task.pin("1")


@_verb(_completed)
async def _archive(_: Perdure, task: Task) -> None:
    await task.archive()


@_verb(_failed)
async def _delete(_: Perdure, task: Task) -> None:
    await task.delete()


# ── afterwards ───────────────────────────────────────────────────────────────────────────────────


def carry_on(app: Perdure) -> None:
    """Whatever the task has come to, the next process can bring it to an end."""
    drive(_carry_on(app))


async def _carry_on(app: Perdure) -> None:
    task = await app.tasks.open(ID, state={"n": 0})
    if task.status in ("completed", "cancelled"):
        task = await app.tasks.open(ID, again=True)
    elif task.status in ("paused", "failed"):
        await task.resume()
    async with task.attempt():
        await task.checkpoint({**task.state, "carried": "on"})
        await task.complete({"done": True})
    found = await app.tasks.get(ID)
    assert found is not None and found.status == "completed" and found.state["carried"] == "on"
