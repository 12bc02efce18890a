"""Durable functions behind a server: start one that this process has the code of, and wait for its result.

The function is carried out by a worker where the store is. Arguments go through the server as JSON: those that would
come out as something else there are refused before anything is sent. The result, or the exception, comes back as it was
recorded.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec.structs import fields

from perdure._durable import DurableFunction, Handle, Options, Outcome, check_call, value_of
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.encoding import codec
from perdure._ground.encoding.json_values import plain
from perdure._model import FINISHED, TaskRecord
from perdure._tasks import Task
from perdure.client.requests import path_of, record_of
from perdure.client.tasks import RemoteTasks
from perdure.errors import Conflict, InvalidInput, NotStorable, TimedOut

R = TypeVar("R")
_LONGEST_POLL = 30.0  # seconds
# What `options` may say that the server takes; the others need the store itself.
_SENT = ("queue", "priority", "key", "timeout", "budget")


class RemoteHandle(Handle[R]):
    """A task of a durable function behind a server."""

    def __init__(self, tasks: RemoteTasks, id: str, uid: str, function: DurableFunction[..., R]) -> None:
        self.id = id
        self._remote, self._address, self._uid, self._function = tasks, f"/v1/tasks/~{uid}", uid, function

    async def task(self) -> Task:
        return await self._remote.handle_by_uid(self._uid)

    async def is_done(self) -> bool:
        return await self._status() in FINISHED

    async def result(self, timeout: Duration | None = None) -> R:
        """Wait for the task and return its result, read by the function's annotation.

        Raises:
            TimedOut: the task has not ended in time; it continues.
            TaskFailed: the task failed with an exception that cannot be rebuilt, or was cancelled.
            NotAllowed: the key may not read results.
        """
        limit = require_timedelta("timeout", timeout)
        left = None if limit is None else limit.total_seconds()
        while True:
            poll = _LONGEST_POLL if left is None else max(0.0, min(left, _LONGEST_POLL))
            transport = self._remote._transport
            reply = await transport.get(f"{self._address}/wait", status="completed", timeout=poll)
            record = record_of(reply.value["task"])
            if record.is_finished:
                told = (await transport.get(f"{self._address}/outcome")).value
                return value_of(msgspec.convert(told, Outcome), self.id, self._function)
            if left is not None and (left := left - poll) <= 0:
                raise TimedOut(
                    f"task {self.id!r} is {record.status} after {timeout}",
                    kept="the task; it continues",
                    do="wait longer, or look with `perdure where` why it takes so long",
                )

    async def _status(self) -> str:
        return str((await self._remote._transport.get(self._address, brief=True)).value["status"])


async def start(tasks: RemoteTasks, id: str, function: DurableFunction[..., R], args: Any, kwargs: Any) -> Any:
    """A handle on the task of this call, made now if its id is free.

    Raises:
        Conflict: the id belongs to another function, or to a call with other arguments.
        NotStorable: JSON cannot hold an argument; nothing was sent.
        InvalidInput: an option is set that only the store itself can follow; nothing was sent.
    """
    function = check_call(id, function)
    chosen = function.chosen
    body = {
        "id": id,
        "function": function.name,
        "version": function.version,
        "arguments": _as_json(function, args, kwargs),
        "queue": chosen.queue,
        "priority": chosen.priority,
        "key": chosen.key or None,
        "budget": None if chosen.budget is None else plain(chosen.budget),
        "timeout": None if chosen.timeout is None else chosen.timeout.total_seconds(),
    }
    _refuse_other_options(chosen)
    record = record_of((await tasks._transport.send("POST", "/v1/tasks", body)).value)
    return RemoteHandle(tasks, record.id, record.uid, function)


async def take_up(tasks: RemoteTasks, id: str, function: DurableFunction[..., R]) -> Any:
    """A handle on a task that was started before.

    Raises:
        NotFound: there is no such task.
        Conflict: the task belongs to another function.
    """
    function = check_call(id, function)
    found = record_of((await tasks._transport.get(path_of(id), brief=True)).value)
    name = await _function_of(tasks, found)
    if name != function.name:
        what = f"belongs to {name!r}" if name else "has no durable function"
        raise Conflict(f"task {id!r} {what}, not {function.name!r}", do="name its own function")
    return RemoteHandle(tasks, found.id, found.uid, function)


async def _function_of(tasks: RemoteTasks, record: TaskRecord) -> str | None:
    listed = (await tasks._transport.get("/v1/tasks", text=record.id, archived=True, hidden=True, limit=200)).value
    return next((item.get("function") for item in listed["items"] if item["uid"] == record.uid), None)


def _as_json(function: DurableFunction[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments by name, as JSON that the function's annotations read back as the same values."""
    encoded: dict[str, bytes] = codec.decode(function.signature.encode_arguments(args, kwargs))
    types = function.signature.types
    sent = {}
    for name, data in encoded.items():
        try:
            sent[name] = msgspec.to_builtins(codec.decode(data))  # moments and lengths of time whole
            type_ = types.get(name, Any)
            there = codec.encode(codec.decode(codec.encode(sent[name]), type_), type_)
        except (InvalidInput, NotStorable, ValueError, TypeError):
            there = b""
        if there != data:
            raise NotStorable(
                name,
                "JSON cannot hold it, so the worker would be given something else",
                do="give plain data, annotate the parameter with its type, or start it where the store is",
            )
    return sent


def _refuse_other_options(chosen: Options) -> None:
    usual = Options()
    for one in fields(Options):
        if one.name not in _SENT and getattr(chosen, one.name) != getattr(usual, one.name):
            raise InvalidInput(
                f"the option {one.name} needs the store itself, and this app reaches it through a server",
                do=f"start it where the store is, or leave out {one.name}",
            )
