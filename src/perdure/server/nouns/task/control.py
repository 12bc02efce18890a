"""Tasks: beginning them and steering them from outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

from msgspec import ValidationError, convert

from perdure._durable import rehearse_fork, start_by_name
from perdure._ground.ids import check_id
from perdure._model import Budget
from perdure._runtime import plan_for
from perdure._tasks import Task, carried, find_row, read_state_at, store_of
from perdure.errors import AlreadyExists, Incompatible, InvalidInput
from perdure.server.aside import aside
from perdure.server.http import Answer, Ask, HttpProblem, version_tag, was_done
from perdure.server.nouns.references import address_of, base_of, require_version, task_of
from perdure.server.shapes.rehearsals import Rehearsal, dry_run_for, fork_plan_for
from perdure.server.shapes.tasks import (
    Cancellation,
    Force,
    Fork,
    Instruction,
    NewPause,
    NewSignal,
    NewTask,
    Resumption,
    Rollback,
    Strict,
    seen_by,
)
from perdure.server.table import Nothing, Route
from perdure.types import TaskRecord

_MOST_FORKS = 1000
_LONGEST = 100 * 365 * 24 * 3600.0  # seconds
_OF_A_FUNCTION = ("version", "arguments", "queue", "priority", "key", "budget", "timeout")
_OF_A_PLAIN_TASK = ("mode", "status", "state", "name", "description", "agent", "config", "depends_on")


async def begin(ask: Ask[Nothing, NewTask]) -> Answer:
    new = ask.body
    if new.function is not None:
        return await _start(ask, new.function)
    if any(getattr(new, name) is not None for name in _OF_A_FUNCTION):
        raise InvalidInput(f"{', '.join(_OF_A_FUNCTION)} belong to a durable function", do="name the function too")
    if new.mode == "create":
        task = await ask.app.tasks.create(
            new.id,
            state=new.state,
            status=new.status,
            name=new.name,
            description=new.description,
            agent=new.agent,
            tags=new.tags,
            config=new.config.config() if new.config is not None else None,
            depends_on=new.depends_on,
            once=ask.once,
        )
    else:
        task = await ask.app.tasks.open(new.id, state=new.state, again=new.mode == "again")
    return await _begun(ask, task, is_new=task.created or new.mode == "create")


async def _start(ask: Ask[Nothing, NewTask], function: str) -> Answer:
    """Have a durable function carried out by a worker; an id that exists is attached to."""
    new, nothing = ask.body, NewTask(id=ask.body.id)
    for name in _OF_A_PLAIN_TASK:
        if getattr(new, name) != getattr(nothing, name):
            raise InvalidInput(f"`{name}` is not for a durable function", do="leave it out, or leave out `function`")
    task = await start_by_name(
        ask.app.tasks,
        new.id,
        function,
        new.version,
        {} if new.arguments is None else new.arguments,
        queue="default" if new.queue is None else new.queue,
        priority=0 if new.priority is None else new.priority,
        key=new.key or "",
        budget=_budget(new.budget),
        timeout=None if new.timeout is None else _seconds(new.timeout),
        tags=new.tags,
    )
    return await _begun(ask, task, is_new=task.created)


async def _begun(ask: Ask[Any, Any], task: Task, *, is_new: bool) -> Answer:
    """The task, and whether this request began it, on whichever of its tries."""
    return await _told(ask, task, status=201 if is_new or await was_done(ask, task.uid) else 200)


def _budget(given: Any) -> Budget | None:
    try:
        return None if given is None else convert(given, _NewBudget, strict=False).to_budget()
    except ValidationError as error:
        raise InvalidInput(f"budget: {error}") from None


def _seconds(given: float) -> timedelta:
    if not 0 < given <= _LONGEST:
        raise InvalidInput(f"timeout is {given}; it is a number of seconds above 0")
    return timedelta(seconds=given)


class _NewBudget(Strict, frozen=True, kw_only=True):
    """The budget of a task; its time in seconds."""

    tokens: int | None = None
    money: float | None = None
    time: float | None = None

    def to_budget(self) -> Budget:
        return Budget(
            tokens=self.tokens, money=self.money, time=None if self.time is None else timedelta(seconds=self.time)
        )


async def pause(ask: Ask[Nothing, NewPause]) -> Answer:
    return await paused(ask, await task_of(ask))


async def paused(ask: Ask[Nothing, NewPause], task: Task) -> Answer:
    """The task, paused by this handle: by anybody's, or by its holder's."""
    asked = ask.body
    if "now" in asked.payload or "checkpoint" in asked.payload:
        raise InvalidInput("`now` and `checkpoint` stand beside the payload, not inside it")
    payload = {**asked.payload, **({"now": True} if asked.now else {})}
    if asked.checkpoint is not None and (base := base_of(ask)) is not None:
        await read_state_at(task, base)
    await task.pause(asked.message, reason=asked.reason, checkpoint=asked.checkpoint, once=ask.once, **payload)
    return await _told(ask, task, done="paused")


async def resume(ask: Ask[Nothing, Resumption]) -> Answer:
    task, how = await task_of(ask), ask.body
    if (how.state is not None or how.checkpoint is not None) and ask.match is None:
        raise HttpProblem(428, "match_required", "a resume with a state or a checkpoint needs If-Match")
    await _same_version(ask, task)
    if not how.anyway and how.checkpoint is None:
        await _refuse_a_changed_world(task)
    await task.resume(state=how.state, checkpoint=how.checkpoint, instruction=how.instruction, once=ask.once)
    return await _told(ask, task)


async def _refuse_a_changed_world(task: Task) -> None:
    """
    Raises:
        Incompatible: what was saved with the task no longer fits what this server can see of its surroundings.
    """
    if await carried(task, "runtime", cause="save") is None:
        return
    plan = await plan_for(task)
    if changed := [(found.name, found.why) for found in plan.refusals if found.looked]:
        raise Incompatible(plan.checkpoint, changed)


async def cancel(ask: Ask[Nothing, Cancellation]) -> Answer:
    task = await task_of(ask)
    if ask.body.dry_run:
        return dry_run_for(ask.caller, await aside(lambda: task.cancel(undo=ask.body.undo, dry_run=True)))
    await task.cancel(undo=ask.body.undo)
    return await _told(ask, task, done="cancelled")


async def rollback(ask: Ask[Nothing, Rollback]) -> Answer:
    task = await task_of(ask)
    await _same_version(ask, task)
    undo = None if ask.body.effects is None else ask.body.effects == "undo"
    if ask.body.dry_run:
        to = str(ask.body.to)
        return dry_run_for(ask.caller, await aside(lambda: task.rollback(to, undo=undo, dry_run=True)))
    await task.rollback(str(ask.body.to), undo=undo, once=ask.once)
    return await _told(ask, task)


async def fork(ask: Ask[Nothing, Fork]) -> Answer:
    task, how = await task_of(ask), ask.body
    if how.dry_run:
        found = await aside(lambda: rehearse_fork(task, how.at, how.set))
        return fork_plan_for(ask.caller, found, await _free_id(ask, task))
    if how.id is not None:
        return await _told(ask, await task.fork(how.id, at=how.at, set=how.set, once=ask.once), status=201)
    for id in _ids_of_forks(task):  # those that are in use are skipped, except one that this request has made before
        try:
            made = await task.fork(id, at=how.at, set=how.set, once=ask.once)
        except AlreadyExists:
            continue
        return await _told(ask, made, status=201)
    raise _too_many_forks(task)


async def _free_id(ask: Ask[Nothing, Fork], task: Task) -> str:
    """The id that was asked for, else the first of `<id>-fork`, `<id>-fork-2`, … that is free."""
    if ask.body.id is not None:
        return ask.body.id
    for id in _ids_of_forks(task):
        if await find_row(store_of(task), check_id(id)) is None:
            return id
    raise _too_many_forks(task)


def _ids_of_forks(task: Task) -> Iterator[str]:
    return (f"{task.id}-fork" + (f"-{number}" if number > 1 else "") for number in range(1, _MOST_FORKS))


def _too_many_forks(task: Task) -> InvalidInput:
    return InvalidInput(f"task {task.id!r} has {_MOST_FORKS} forks without names", do="give the fork an id")


async def signal(ask: Ask[Nothing, NewSignal]) -> Answer:
    task = await task_of(ask)
    await task.signal(ask.body.name, ask.body.value, once=ask.once)
    return Answer(None, 202)


async def instruct(ask: Ask[Nothing, Instruction]) -> Answer:
    await (await task_of(ask)).instruct(ask.body.text, once=ask.once)
    return Answer(None, 202)


async def take(ask: Ask[Nothing, None]) -> Answer:
    task = await task_of(ask)
    async with ask.server.turns.of(task.uid), task.attempt(take_over=True):
        pass
    return await _told(ask, task)


async def archive(ask: Ask[Nothing, None]) -> Answer:
    task = await task_of(ask)
    await task.archive()
    return await _told(ask, task)


async def delete(ask: Ask[Force, None]) -> Answer:
    task = await task_of(ask)
    await _same_version(ask, task)
    await task.delete(force=ask.query.force)
    return Answer(None, 204)


async def _same_version(ask: Ask[Any, Any], task: Task) -> None:
    require_version(ask, task.id, (await task.record()).version)


async def _told(ask: Ask[Any, Any], task: Task, *, status: int = 200, done: str | None = None) -> Answer:
    """The task after the verb; 202 when what was asked for is a wish that its attempt has yet to fulfil."""
    record = await task.record()
    if done is not None and record.status != done:
        status = 202
    headers = {"Location": address_of(record.id, record.uid)} if status == 201 else {}
    return Answer(seen_by(ask.caller, record), status, version_tag(record.version), headers)


def _verb(
    name: str, does: str, handler: Callable[[Ask[Any, Any]], Awaitable[Answer]], body: Any = None, **more: Any
) -> Route:
    path = f"/v1/tasks/{{task}}/{name}"
    settings: dict[str, Any] = {"scopes": ("tasks:control",), "answer": TaskRecord, "once": "may", **more}
    return Route(method="POST", path=path, handler=handler, does=does, body=body, **settings)


ROUTES = (
    Route(
        method="POST",
        path="/v1/tasks",
        handler=begin,
        does="Begin a task, or open the one with this id.",
        scopes=("tasks:write",),
        body=NewTask,
        answer=TaskRecord,
        status=201,
        statuses=(200, 409),
        once="must",
        holds_state=True,
    ),
    _verb(
        "pause",
        "Pause a task for a typed reason.",
        pause,
        NewPause,
        statuses=(202, 409),
        headers={"Perdure-Base": "may"},
        holds_state=True,
    ),
    _verb(
        "resume",
        "Resume a paused or failed task.",
        resume,
        Resumption,
        match="may",
        statuses=(409, 412, 428),
        holds_state=True,
    ),
    _verb(
        "cancel",
        "Cancel a task and undo its effects.",
        cancel,
        Cancellation,
        rehearsal=Rehearsal,
        statuses=(202, 409),
    ),
    _verb(
        "rollback",
        "Return a task to an earlier checkpoint.",
        rollback,
        Rollback,
        rehearsal=Rehearsal,
        match="must",
        statuses=(202, 409, 412),
    ),
    _verb(
        "fork",
        "Make a new task from this one's past.",
        fork,
        Fork,
        rehearsal=Rehearsal,
        scopes=("tasks:control", "tasks:write"),
        status=201,
        once="must",
        statuses=(200, 409),
    ),
    _verb(
        "signal",
        "Send a durable function a signal.",
        signal,
        NewSignal,
        scopes=("tasks:write",),
        answer=None,
        status=202,
        once="must",
        statuses=(409,),
    ),
    _verb("instruct", "Change what a durable function is to do.", instruct, Instruction, answer=None, status=202),
    _verb("take", "Take a task from the process that works on it, and let it go.", take, statuses=(409,)),
    _verb("archive", "Take a finished task out of sight.", archive, statuses=(409,)),
    Route(
        method="DELETE",
        path="/v1/tasks/{task}",
        handler=delete,
        does="Remove a finished task for good, except for its tombstone.",
        scopes=("tasks:control",),
        query=Force,
        status=204,
        statuses=(202, 409, 412),
        once="may",
        match="must",
    ),
)
