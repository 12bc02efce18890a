"""Start the task of a durable function: `app.start`, and children.

A task started inside a durable function is its child. The start is recorded before the code continues, so a replay
starts nothing twice, and the child lives on when its parent's process dies.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from perdure._durable.attempt import current, recorded_call
from perdure._durable.declare import DurableFunction
from perdure._durable.lifecycle.attach_check import check_same
from perdure._durable.lifecycle.task_handle import Handle
from perdure._durable.models import seal_budget
from perdure._ground.ids import check_id
from perdure._ground.secrets import envelope
from perdure._model import START, Budget, Config
from perdure._replay import digest
from perdure._store import CallRow, Store, TaskRow
from perdure._tasks import Task, Tasks, find_row, insert_task, store_of, task_by_uid
from perdure.errors import InvalidInput, NotFound

LOOK_SECONDS = 0.02
_AROUND = "PERDURE_TASK"


class Beginning(Struct, gc=False):
    """The first record of a task. An attempt in the same process uses it instead of reading the store."""

    arguments: bytes
    budget: Budget | None
    deadline_at: int | None = None
    copies: dict[str, Any] | None = None  # the decoded arguments, not handed out yet


async def start(
    tasks: Tasks,
    id: str,
    function: DurableFunction[..., Any],
    args: Any,
    kwargs: Any,
    *,
    parent_uid: str | None = None,
    here: bool = False,
    is_taken: bool = False,
    tags: Mapping[str, str] = {},
) -> tuple[Task, Beginning]:
    """The task of this call. It is made now if its id is free. `check_call` has validated id and function.

    With `here`, this process claims it at once. With `is_taken`, the id was found to be in use a moment ago.

    Raises:
        Conflict: the id belongs to another function, or to a call with other arguments.
        NotStorable: an argument cannot be stored; nothing was written.
        NotFound: there is no task that it could be a part of.
    """
    store, options = store_of(tasks), function.chosen
    arguments, copies = function.signature.keep_arguments(args, kwargs)
    timeout = options.timeout or (options.config.timeout if options.config is not None else None)
    deadline_at = None if timeout is None else await deadline_of(store, timeout)
    beginning = Beginning(arguments, options.budget, deadline_at, copies)
    not_before = await deadline_of(store, options.debounce) if options.debounce is not None else None
    if options.part_of:
        parent_uid = await _whole(store, options.part_of)
    elif parent_uid is None and _AROUND in os.environ:
        parent_uid = await _task_around(tasks)

    def call(uid: str) -> dict[str, Any]:
        return {
            "function": function.name,
            "function_version": function.version,
            "arguments": envelope.seal(arguments, "arguments", uid, store.ring),
            "queue": options.queue,
            "priority": options.priority,
            "parent_uid": parent_uid,
            "call_key": options.key,
            "not_before": not_before,
            "deadline_at": beginning.deadline_at,
            "budget": seal_budget(store, uid, options.budget),
        }

    config = options.config
    if options.dependency_policy != "wait":
        config = replace(config or Config(), dependency_policy=options.dependency_policy)
    what: dict[str, Any] = {
        "name": options.task_name or function.name,
        "depends_on": options.depends_on,
        "config": config,
        "call": call,
    }
    what |= {"tags": tags, "origin": {"module": function.module}}
    if here and parent_uid is None and not tags:
        what["alike"] = function.alike
    verb = "start_hidden" if options.part_of else "start_function"
    while True:
        made = None if is_taken else await insert_task(tasks, verb, id, {}, here=here, **what)
        if made is not None:
            return made, beginning
        is_taken = False
        row = await find_row(store_of(tasks), id)
        if row is not None:
            if options.debounce is None or not await _postpone(store, row, function, call(row.uid)):
                await check_same(store, row, function, arguments)
            return await task_by_uid(tasks, row.uid), beginning


def check_call(id: object, function: Any) -> DurableFunction[..., Any]:
    """Returns the function, or refuses a usual mistake with an error that names it.

    Raises:
        InvalidInput: not a durable function, or id and function are swapped.
    """
    if type(id) is str and isinstance(function, DurableFunction):
        check_id(id)
        return function
    if isinstance(id, DurableFunction):
        name = getattr(id.function, "__name__", id.name)
        raise InvalidInput(f"{name} is given where the task's id belongs", do=f"the id comes first: {_example(name)}")
    check_id(id)
    inner = getattr(function, "__func__", None)
    if isinstance(inner, DurableFunction):  # a class method, from Python 3.13 on
        function = inner.__get__(function.__self__)
    if not isinstance(function, DurableFunction):
        raise _not_durable(function)
    return function


def _not_durable(given: Any) -> InvalidInput:
    name = getattr(given, "__name__", "function")
    if inspect.iscoroutine(given):
        given.close()  # else Python warns that it was never awaited
        return InvalidInput(
            f"{name} was called, and its coroutine is given where the function belongs",
            do=f"give the function itself, then its arguments: {_example(name)}",
        )
    if not callable(given):
        return InvalidInput(
            f"{given!r:.100} is not a durable function",
            do=f"give the function itself, not what it returns, then its arguments: {_example(name)}",
        )
    if isinstance(given, partial):
        name = getattr(given.func, "__name__", "function")
        return InvalidInput(
            f"a partial of {name} is given where the function belongs; its arguments would not be stored",
            do=f"give the durable function itself, then all its arguments: {_example(name)}",
        )
    if name == "<lambda>":
        return InvalidInput("a lambda is not a durable function", do="write it as a def with @durable above")
    return InvalidInput(f"{name} is not a durable function", do=f"put @durable above `def {name}`")


def _example(name: str) -> str:
    return f'app.run("my-task", {name}, …)'


async def _task_around(tasks: Tasks) -> str | None:
    """The uid of the task whose command runs this process, if `perdure run` started it."""
    around = os.environ.get(_AROUND)
    row = await find_row(store_of(tasks), around) if around else None
    return row.uid if row is not None else None


async def _whole(store: Store, id: str) -> str:
    """The uid of the task that a hidden one is a part of."""
    row = await find_row(store, check_id(id))
    if row is None:
        raise NotFound("task", id, store.place)
    return row.uid


async def deadline_of(store: Store, timeout: timedelta) -> int:
    """When the time-out of a task that starts now is over, in milliseconds since the epoch."""
    return await store.wall_ms() + timeout // timedelta(milliseconds=1)


async def _postpone(store: Store, row: TaskRow, function: DurableFunction[..., Any], call: Mapping[str, Any]) -> bool:
    """Debounce: replace the call of a task that was not begun yet by this one. Returns whether that was possible."""
    before = await store.row(CallRow, "get_call", uid=row.uid)
    if before is None or (before.function, before.version) != (function.name, function.version):
        return False
    params = {
        **store.event(row.uid, "postponed", {}),
        "arguments": call["arguments"],
        "not_before": call["not_before"],
    }
    return await store.verb("postpone", row.uid, params, key=row.id) is not None


async def start_or_adopt(
    tasks: Tasks, id: str, function: DurableFunction[..., Any], args: Any, kwargs: Any
) -> Handle[Any]:
    """A handle on the task. Inside a durable function the start is recorded, and the task is its child."""
    function, scope = check_call(id, function), current.get()
    if scope is None or scope.is_body:
        task, _ = await start(tasks, id, function, args, kwargs)
        return Handle(tasks, id, task.uid, function)
    parent = scope.attempt.uid

    async def begin() -> str:
        await scope.attempt.flush()
        child, _ = await start(tasks, id, function, args, kwargs, parent_uid=parent)
        return child.uid

    uid = await recorded_call(scope, f"{START}{function.name}", str, begin, asked=digest((id,), {}))
    return Handle(tasks, id, uid, function)
