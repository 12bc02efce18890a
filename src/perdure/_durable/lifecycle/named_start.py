"""Start a durable function by its name, in a process that does not have its code.

Arguments are plain data by name. They are checked against what live workers announce about the function, and decoded by
its annotations when a worker carries it out. The data of an event reaches a function in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure._durable.declare import function_for, known_functions
from perdure._durable.inspect import read_functions
from perdure._durable.lifecycle.task_start import deadline_of
from perdure._durable.models import seal_budget
from perdure._durable.values import arguments_schema
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.encoding import codec
from perdure._ground.ids import check_id
from perdure._ground.secrets import envelope
from perdure._model import Budget, misfit
from perdure._store import CallRow, Store, TaskRow
from perdure._tasks import Task, Tasks, find_row, insert_task, store_of, task_by_uid
from perdure.errors import Conflict, InvalidInput, NotFound

Json = Any
_MOST_PRIORITY = 1 << 31


async def start_by_name(
    tasks: Tasks,
    id: str,
    function: str,
    version: int | None = None,
    arguments: Mapping[str, Json] = {},
    *,
    queue: str = "default",
    priority: int = 0,
    key: str = "",
    budget: Budget | None = None,
    timeout: Duration | None = None,
    tags: Mapping[str, str] = {},
) -> Task:
    """The task of this call, made now if its id is free."""
    check_id(id)
    version, encoded = await encode_call(store_of(tasks), function, version, arguments)
    return await start_encoded(
        tasks,
        id,
        function,
        version,
        encoded,
        queue=queue,
        priority=priority,
        key=key,
        budget=budget,
        timeout=timeout,
        tags=tags,
    )


async def encode_call(
    store: Store, function: str, version: int | None, arguments: Mapping[str, Json]
) -> tuple[int, bytes]:
    """The version that is meant, and the arguments as they are stored.

    Raises:
        NotFound: no version was given, and no live worker knows the function.
        InvalidInput, NotStorable: the arguments do not fit.
    """
    check_id(function, "function's name")
    if version is not None and (type(version) is not int or not 1 <= version < 1 << 31):
        raise InvalidInput(f"the version is {version!r}; it is a whole number from 1 up")
    given: object = arguments
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidInput("arguments are given by name, as a mapping", do='write {"pages": 3}')
    version, schema = await _known(store, function, version)
    wrong = misfit(dict(arguments), schema) if schema is not None else None
    if wrong is not None:
        raise InvalidInput(f"the arguments of {function!r} do not fit: {wrong}")
    return version, codec.encode({name: codec.encode(value) for name, value in arguments.items()})


async def _known(store: Store, function: str, version: int | None) -> tuple[int, Mapping[str, Any] | None]:
    """The version, the newest if none was given, and what it takes, if this process or a live worker knows that."""
    here = known_functions().get(function) if version is None else function_for(function, version)
    announced = {one.version: one.arguments for one in await read_functions(store) if one.name == function}
    if version is None:
        versions = [*announced, *([here.version] if here is not None else [])]
        if not versions:
            raise NotFound(
                "function", function, store.place, do="start a worker that knows it, or give the version it will have"
            )
        version = max(versions)
    if here is not None and here.version == version:
        return version, arguments_schema(here.signature)
    return version, announced.get(version)


async def start_encoded(
    tasks: Tasks,
    id: str,
    function: str,
    version: int,
    arguments: bytes,
    *,
    queue: str = "default",
    priority: int = 0,
    key: str = "",
    budget: Budget | None = None,
    timeout: Duration | None = None,
    tags: Mapping[str, str] = {},
    module: str = "",
) -> Task:
    """Start the task of a call whose arguments are already encoded.

    Raises:
        Conflict: the id belongs to another function, or to a call with other arguments.
    """
    store = store_of(tasks)
    check_id(queue, "queue")
    if type(priority) is not int or not -_MOST_PRIORITY < priority < _MOST_PRIORITY:
        raise InvalidInput(f"the priority is {priority!r}; it is a whole number")
    if key:
        check_id(key, "key")
    limit = require_timedelta("timeout", timeout, is_positive=True)
    deadline_at = await deadline_of(store, limit) if limit is not None else None

    def call(uid: str) -> dict[str, Any]:
        return {
            "function": function,
            "function_version": version,
            "arguments": envelope.seal(arguments, "arguments", uid, store.ring),
            "queue": queue,
            "priority": priority,
            "parent_uid": None,
            "call_key": key,
            "not_before": None,
            "deadline_at": deadline_at,
            "budget": seal_budget(store, uid, budget),
        }

    origin = {"module": module} if module else {}
    while True:
        made = await insert_task(tasks, "start_function", id, {}, name=function, tags=tags, origin=origin, call=call)
        if made is not None:
            return made
        row = await find_row(store, id)
        if row is not None:
            await _check_same(store, row, function, version, arguments)
            return await task_by_uid(tasks, row.uid)


async def _check_same(store: Store, row: TaskRow, function: str, version: int, arguments: bytes) -> None:
    """Return if the task belongs to this call, as far as that can be told without the function's code."""
    rows = await store.rows(CallRow, "get_call", uid=row.uid)
    if not rows or rows[0].function != function:
        what = f"belongs to {rows[0].function!r}" if rows else "has no durable function"
        raise Conflict(f"task {row.id!r} {what} and cannot run {function!r} too", do="choose another id")
    if row.line > 1 or rows[0].version != version:
        return  # its arguments have changed since it was started
    before = envelope.unseal(rows[0].arguments, kind="arguments", bound_to=row.uid, ring=store.ring)
    if before != arguments and _plain(before) != _plain(arguments):
        raise Conflict(
            f"task {row.id!r} was started with other arguments",
            do="choose another id for another call; the same id attaches to the same call",
        )


def _plain(arguments: bytes) -> dict[str, Any]:
    return {name: codec.peek(value) for name, value in codec.decode(arguments).items()}
