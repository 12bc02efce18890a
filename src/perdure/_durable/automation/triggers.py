"""`app.triggers` and `app.events`: start or signal tasks when something happens outside.

    await app.triggers.start("invoices", read_invoice).directory("inbox", pattern="*.pdf")
    await app.triggers.signal("paid", "order-{number}", "payment").event("payment.received")
    await app.events.send("payment.received", {"number": 42}, id="evt_7f3")

Owns how triggers and events are stored. perdure/_worker/waits/triggers.py watches files and acts on events.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from perdure._durable.automation.schedules import require_version
from perdure._durable.declare import DurableFunction, function_for
from perdure._durable.inspect import read_functions
from perdure._durable.lifecycle import start
from perdure._durable.values import schema_of
from perdure._ground.clock import moment
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.encoding import codec
from perdure._ground.ids import check_id, new_uid
from perdure._model import Incoming, Trigger, incoming_key, misfit, signalled_task
from perdure._store import Store
from perdure._tasks import Kept, Shelf, Tasks, store_of
from perdure.errors import InvalidInput, NotFound, TooLarge

# The id of a started task consists of both, joined by @.
_LONGEST_ID, _LONGEST_EVENT = 60, 128
MAX_BYTES = 1 << 20


class Received(Struct, frozen=True, kw_only=True):
    """The receipt for an event. `is_new` is False when it was sent before."""

    name: str
    id: str
    is_new: bool


class IncomingEvent(Struct, frozen=True, kw_only=True):
    """A stored event: by trigger, the task it led to, or the error it caused."""

    name: str
    id: str
    data: Any
    received_at: datetime
    is_over: bool
    led_to: Mapping[str, str]
    refused: Mapping[str, str]

    @property
    def key(self) -> str:
        """Its name and its id, by which events are listed."""
        return incoming_key(self.name, self.id)


class TriggerDraft:
    """An action; `event`, `file` or `directory` says when to take it, and stores the trigger."""

    def __init__(self, tasks: Tasks, id: str, trigger: Trigger) -> None:
        self._tasks, self._id, self._trigger = tasks, check_id(id, "trigger's id"), trigger
        self._store = store_of(tasks)
        self._version: int | None = None
        if len(id) > _LONGEST_ID:
            raise InvalidInput(f"the trigger's id has {len(id)} characters; at most {_LONGEST_ID} are allowed")

    async def event(
        self,
        name: str,
        *,
        rate: tuple[int, Duration] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Trigger:
        """Act on each event of this name. Its data must fit `schema`; the default is the type of the function's
        parameter. `rate` limits how many begin in a length of time; the others wait."""
        check_id(name, "event's name")
        if name.startswith("~"):
            raise InvalidInput(f"the event's name {name!r} begins with ~, which is reserved")
        return await self._keep(rate, source="event", event=name, schema=schema or self._trigger.schema)

    async def file(self, path: str | os.PathLike[str], *, rate: tuple[int, Duration] | None = None) -> Trigger:
        """Act whenever this file changes or appears; its present content does not count. Only on this machine."""
        where = _whole(path)
        return await self._keep(rate, source="file", path=where, event=f"~{self._id}", seen=file_shape(where) or "-")

    async def directory(
        self, path: str | os.PathLike[str], *, pattern: str = "*", rate: tuple[int, Duration] | None = None
    ) -> Trigger:
        """Act once on each file in this folder whose name matches, now and later. Only on this machine."""
        event = f"~{self._id}"
        return await self._keep(rate, source="directory", path=_whole(path), pattern=pattern, event=event)

    def only_if(self, version: int | None) -> TriggerDraft:
        """The same, to be kept only if the trigger is at this version; 0: if there is none."""
        self._version = version
        return self

    async def _keep(self, rate: tuple[int, Duration] | None, **when: Any) -> Trigger:
        most, per_ms = _limit(rate)
        host = self._store.presence.process.host if when["source"] != "event" else ""
        new = replace(self._trigger, host=host, most=most, per_ms=per_ms, **when)

        def keep(old: Trigger | None) -> tuple[Trigger, int | None]:
            require_version("trigger", self._id, self._version, old)
            if old is None:
                return new, None
            is_same = (old.source, old.path) == (new.source, new.path)
            seen = old.seen if is_same and old.seen else new.seen
            return replace(new, is_paused=old.is_paused, begun=old.begun, seen=seen), None

        return await triggers_of(self._store).update(self._id, keep)


def _whole(path: str | os.PathLike[str]) -> str:
    return os.path.abspath(path)


def _limit(rate: tuple[int, Duration] | None) -> tuple[int, int]:
    if rate is None:
        return 0, 0
    most, per = rate
    window = require_timedelta("the time of a rate", per, is_positive=True)
    if most < 1:
        raise InvalidInput(f"rate is {rate!r}", do='write rate=(10, "1m"): ten a minute')
    return most, window // timedelta(milliseconds=1)


class Triggers:
    """`app.triggers`: what to do when something happens outside."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)
        self._shelf = triggers_of(self._store)

    def start(self, id: str, fn: DurableFunction[..., Any], /, *args: Any) -> TriggerDraft:
        """Start `fn(*args, data)` with the data of the event; for a file or folder, that is the path."""
        names = list(fn.signature._signature.parameters)
        if len(names) <= len(args):
            raise InvalidInput(f"{fn.name} has no parameter left for the event's data")
        takes = names[len(args)]
        given = zip(names, args, strict=False)
        encoded = {name: codec.encode(value, fn.signature.types[name]) for name, value in given}
        trigger = Trigger(
            function=fn.name,
            version=fn.version,
            module=fn.module,
            arguments=codec.encode(encoded),
            takes=takes,
            queue=fn.chosen.queue,
            priority=fn.chosen.priority,
            schema=schema_of(fn.signature.types[takes]),
        )
        return TriggerDraft(self._tasks, id, trigger)

    def signal(self, id: str, task: str, name: str) -> TriggerDraft:
        """Signal a task. In its id, `order-{number}`, the field `number` of the event's data is filled in."""
        if check_id(name, "signal's name").startswith("~"):
            raise InvalidInput(f"the signal {name!r} begins with ~, as perdure's own do", do="choose another name")
        return TriggerDraft(self._tasks, id, Trigger(task=task, signal=name))

    async def add(
        self,
        id: str,
        event: str,
        *,
        function: str | None = None,
        version: int | None = None,
        arguments: Mapping[str, Any] = {},
        takes: str | None = None,
        queue: str = "default",
        priority: int = 0,
        task: str | None = None,
        signal: str | None = None,
        rate: tuple[int, Duration] | None = None,
        schema: Mapping[str, Any] | None = None,
        if_version: int | None = None,
    ) -> Trigger:
        """Store a trigger for an event. It starts a function by name, which this process need not know, or signals a
        task. The parameter `takes` gets the event's data (default: the first parameter without an argument).

        Raises:
            NotFound: no version was given, and no live worker knows the function; nothing was written.
            InvalidInput: the function, signal or arguments are not valid; nothing was written.
            StaleVersion: the trigger is not at `if_version` (0: there is one); nothing was written.
        """
        if (function is None) == (task is None) or (task is None) != (signal is None):
            raise InvalidInput("a trigger starts a function, or signals a task", do="give function, or task and signal")
        if function is None:
            draft = self.signal(id, str(task), str(signal))
        else:
            named = await _by_name(self._store, function, version, arguments, takes)
            draft = TriggerDraft(self._tasks, id, replace(named, queue=check_id(queue, "queue"), priority=priority))
        return await draft.only_if(if_version).event(event, rate=rate, schema=schema)

    async def get(self, id: str) -> Trigger | None:
        kept = await self._shelf.get(id)
        return kept.value if kept else None

    async def list(self) -> Mapping[str, Trigger]:
        return {kept.key: kept.value for kept in await self._shelf.all()}

    async def pause(self, id: str) -> None:
        """Stop acting; events wait until it is resumed."""
        await self._change(id, is_paused=True)

    async def resume(self, id: str) -> None:
        await self._change(id, is_paused=False)

    async def remove(self, id: str, *, if_version: int | None = None) -> None:
        """Delete the trigger; tasks it has started stay.

        Raises:
            NotFound: there is no such trigger.
            StaleVersion: it is not at `if_version`.
        """
        while True:
            kept = await self._existing(id)
            require_version("trigger", id, if_version, kept.value)
            if await self._shelf.drop(kept):
                return

    async def _change(self, id: str, **what: Any) -> None:
        while True:
            kept = await self._existing(id)
            if await self._shelf.change(kept, replace(kept.value, **what)):
                return

    async def _existing(self, id: str) -> Kept[Trigger]:
        kept = await self._shelf.get(id)
        if kept is None:
            raise NotFound("trigger", id, self._store.place, do="`perdure trigger list` shows what is there")
        return kept


async def _by_name(
    store: Store, function: str, version: int | None, arguments: Mapping[str, Any], takes: str | None
) -> Trigger:
    """A trigger that starts this function, as live workers announce it."""
    check_id(function, "function's name")
    known = [one for one in await read_functions(store) if one.name == function and version in (None, one.version)]
    newest = max(known, key=lambda one: one.version, default=None)
    if newest is None and version is None:
        raise NotFound("function", function, store.place, do="start a worker that knows it, or give the version")
    schema = newest.arguments if newest is not None else None
    names = list((schema or {}).get("properties") or ())
    left = [name for name in names if name not in arguments]
    takes = takes or (left[0] if left else None)
    if takes is None:
        raise InvalidInput(f"it is not known which parameter of {function!r} takes the event", do="name it in `takes`")
    unknown = [name for name in (*arguments, takes) if schema is not None and name not in names]
    if unknown or takes in arguments:
        raise InvalidInput(f"{function} has no parameter {(unknown or [takes])[0]!r} left", do=f"it has {names}")
    return Trigger(
        function=function,
        version=newest.version if newest is not None else int(version or 1),
        arguments=codec.encode({name: codec.encode(value) for name, value in arguments.items()}),
        takes=takes,
        schema=_part(schema, takes) if schema is not None else None,
    )


def _part(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The schema of one parameter, with the definitions it refers to."""
    shared = {key: schema[key] for key in ("$defs",) if key in schema}
    return {**shared, **schema["properties"][name]}


class Events:
    """`app.events`: emit and read events."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)

    async def send(self, name: str, data: Any = None, *, id: str | None = None) -> Received:
        """Store an event. Once this returns, workers will act on it even if this process dies. An event with the same
        id is stored once.

        Raises:
            NotFound: no trigger wants events of this name; nothing was stored.
            InvalidInput, TooLarge, NotStorable: its data does not fit; nothing was stored.
        """
        store = self._store
        check_id(name, "event's name")
        now = await store.wall_ms()
        known = check_id(id, "event's id") if id is not None else new_uid(now)
        if len(known) > _LONGEST_EVENT:
            raise InvalidInput(f"the event's id has {len(known)} characters; at most {_LONGEST_EVENT} are allowed")
        wanted = [kept.value for kept in await triggers_of(store).all() if kept.value.event == name]
        if not wanted or name.startswith("~"):
            raise NotFound("trigger for the event", name, store.place, do="add one first: perdure trigger add")
        for trigger in wanted:
            wrong = misfit(data, trigger.schema) if trigger.schema is not None else None
            if wrong is not None:
                raise InvalidInput(f"the event {name!r} does not fit: {wrong}")
        size = len(codec.encode(data))
        if size > MAX_BYTES:
            raise TooLarge(f"the event {name!r}", size, MAX_BYTES)
        incoming = Incoming(name=name, id=known, data=data, received_at=now, done={})
        is_new = await events_of(store).add(incoming_key(name, known), incoming, due_at=now)
        return Received(name=name, id=known, is_new=is_new)

    async def list(self, *, limit: int = 1000, after: str = "") -> Sequence[IncomingEvent]:
        """The stored events, by name and id; those behind `after`, the key of an event."""
        return [_view(kept.value) for kept in await events_of(self._store).all(limit=limit, after=after)]


def _view(found: Incoming) -> IncomingEvent:
    return IncomingEvent(
        name=found.name,
        id=found.id,
        data=found.data,
        received_at=moment(found.received_at),
        is_over=found.is_over,
        led_to={trigger: said for trigger, said in found.done.items() if not said.startswith("!")},
        refused={trigger: said[1:] for trigger, said in found.done.items() if said.startswith("!")},
    )


# ── for workers ──────────────────────────────────────────────────────────────────────────────────


def triggers_of(store: Store) -> Shelf[Trigger]:
    return Shelf(store, "trigger", Trigger)


def events_of(store: Store) -> Shelf[Incoming]:
    return Shelf(store, "event", Incoming)


def file_shape(path: str) -> str | None:
    """Tells one content of a file from another without reading it; None when it is missing or not a regular file."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    if not os.path.isfile(path) or os.path.islink(path):
        return None
    return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"


def can_act(trigger: Trigger) -> bool:
    """True if this process can carry out the trigger: it has the function's code, or needs none."""
    return bool(trigger.signal) or function_for(trigger.function, trigger.version, trigger.module) is not None


async def act(tasks: Tasks, id: str, trigger: Trigger, event: Incoming) -> str:
    """Start or signal the task and return its id. Repeating it for the same event changes nothing.

    Raises:
        InvalidInput, NotFound, Conflict: it cannot be done, now or later.
    """
    if trigger.signal:
        task = await tasks.handle(signalled_task(trigger.task, event.data))
        await task.signal(trigger.signal, event.data, once=incoming_key(event.name, event.id))
        return task.id
    function = function_for(trigger.function, trigger.version, trigger.module)
    assert function is not None
    task_id = f"{id}@{event.id}"
    named: dict[str, bytes] = codec.decode(trigger.arguments)
    named[trigger.takes] = codec.encode(event.data)  # decoded by the parameter's annotation, as in a call
    args, kwargs = function.signature.decode_arguments(codec.encode(named))
    chosen = function.options(queue=trigger.queue, priority=trigger.priority)
    await start(tasks, check_id(task_id), chosen, args, kwargs, tags={"trigger": id, "event": event.name})
    return task_id
