"""Schedules start a durable function again and again. Each tick's task gets the state that the one before it returned.

    await app.schedule("digest", digest, "inbox").cron("0 9 * * 1-5", tz="Europe/Berlin")

Owns how a schedule is stored and read. perdure/_model/waits/schedule.py computes when ticks are due, and
perdure/_worker/waits/schedules.py starts them.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from perdure._durable.attempt import current, recorded_call
from perdure._durable.declare import DurableFunction, function_for
from perdure._durable.lifecycle import encode_call, start, start_encoded
from perdure._ground.clock import moment, to_ms
from perdure._ground.durations import Duration
from perdure._ground.ids import check_id
from perdure._model import Missed, Plan, Trigger, check_cron, check_every, check_missed, tick_id, tick_name
from perdure._store import Store, TaskRow
from perdure._tasks import Kept, Shelf, Tasks, current_row, find_row, store_of
from perdure.errors import Conflict, InvalidInput, NotFound, StaleVersion

log = logging.getLogger("perdure.schedules")

KIND = "schedule"
_LONGEST_ID = 160  # the id of a tick's task also has the moment
_MOST_OPEN = 50


class Schedule(Struct, frozen=True, kw_only=True):
    """A schedule as it was when it was read."""

    id: str
    function: str
    cron: str
    tz: str
    every: timedelta | None
    missed: Missed
    overlaps: bool
    is_paused: bool
    next_at: datetime | None
    last_at: datetime | None  # the newest tick that is done
    runs: int
    skipped: int  # ticks that no worker was there for and that were not made up
    open: Sequence[str]  # tasks of ticks that had not ended when they were last looked at
    state: Any  # the result of the newest run that completed
    function_version: int = 1
    queue: str = "default"
    version: int = 0  # differs when what it starts, or when, was changed; its runs do not change it


class Tick(Struct, frozen=True, kw_only=True):
    """Which tick of a schedule started this task."""

    schedule: str
    at: datetime
    state: Any  # what the run before it returned; None for the first


class ScheduleDraft:
    """A function to start; `cron` or `every` says when, and stores the schedule."""

    def __init__(self, tasks: Tasks, id: str, plan: Plan) -> None:
        self._tasks, self._id, self._plan = tasks, id, plan
        self._store = store_of(tasks)
        self._version: int | None = None

    def __await__(self) -> Generator[Any, None, ScheduleDraft]:
        """Gives the draft itself, so `await (await app.schedule(…)).cron(…)` works like a single await."""
        return self._itself().__await__()

    async def _itself(self) -> ScheduleDraft:
        return self

    async def cron(
        self, expression: str, *, tz: str = "UTC", missed: Missed = "once", overlap: bool = False
    ) -> Schedule:
        """Start it whenever the expression matches in this time zone: "0 9 * * 1-5" is 9:00 on working days.

        `missed` says what to do about ticks while no worker was there: `skip` them, make up for all of them with one
        run (`once`), or run each (`all`). A run waits for the end of the one before it, unless `overlap` is set.

        Raises:
            InvalidInput: the expression or the zone is not valid; nothing was written.
        """
        check_cron(expression, tz)
        return await self._keep(lambda plan: replace(plan, cron=expression, zone=tz, every_ms=0), missed, overlap)

    async def every(self, length: Duration, *, missed: Missed = "once", overlap: bool = False) -> Schedule:
        """Start it at this interval; the first time after one interval."""
        every_ms = check_every(length)
        return await self._keep(lambda plan: replace(plan, cron="", zone="UTC", every_ms=every_ms), missed, overlap)

    def only_if(self, version: int | None) -> ScheduleDraft:
        """The same, to be kept only if the schedule is at this version; 0: if there is none."""
        self._version = version
        return self

    async def _keep(self, when: Callable[[Plan], Plan], missed: Missed, overlap: bool) -> Schedule:
        check_missed(missed)
        now = await self._store.wall_ms()
        new = replace(when(self._plan), missed=missed, overlaps=overlap, anchor=now, last=now)

        def keep(old: Plan | None) -> tuple[Plan, int | None]:
            require_version("schedule", self._id, self._version, old)
            plan = new if old is None else _changed(old, new)
            return plan, next_look(plan)

        plan = await shelf_of(self._store).update(self._id, keep)
        return await view(self._store, self._id, plan)


def _changed(old: Plan, new: Plan) -> Plan:
    """The new schedule with the progress of the old one. With the same times, it keeps its ticks."""
    is_same_time = (old.cron, old.zone, old.every_ms) == (new.cron, new.zone, new.every_ms)
    if is_same_time:
        new = replace(new, last=old.last, anchor=old.anchor)
    new = replace(new, is_paused=old.is_paused, open=old.open, state=old.state)
    return replace(new, runs=old.runs, skipped=old.skipped)


def draft(tasks: Tasks, id: str, function: DurableFunction[..., Any], args: Any, kwargs: Any) -> ScheduleDraft:
    _check_schedule_id(id)
    options = function.chosen
    plan = Plan(
        function=function.name,
        version=function.version,
        module=function.module,
        arguments=function.signature.encode_arguments(args, kwargs),
        queue=options.queue,
        priority=options.priority,
    )
    return ScheduleDraft(tasks, id, plan)


def _check_schedule_id(id: str) -> None:
    check_id(id, "schedule's id")
    if len(id) > _LONGEST_ID:
        raise InvalidInput(f"the schedule's id has {len(id)} characters; at most {_LONGEST_ID} are allowed")


class Schedules:
    """`app.schedules`: the schedules of one namespace."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)
        self._shelf = shelf_of(self._store)

    async def list(self) -> Sequence[Schedule]:
        return [await view(self._store, kept.key, kept.value) for kept in await self._shelf.all()]

    async def get(self, id: str) -> Schedule | None:
        kept = await self._shelf.get(id)
        return await view(self._store, id, kept.value) if kept else None

    async def pause(self, id: str) -> Schedule:
        """Start nothing until it is resumed; runs under way continue."""
        return await self._change(id, lambda plan, now: replace(plan, is_paused=True))

    async def resume(self, id: str) -> Schedule:
        """Continue with the next tick; ticks during the pause are not made up."""
        return await self._change(id, lambda plan, now: replace(plan, is_paused=False, last=max(plan.last, now)))

    async def remove(self, id: str, *, if_version: int | None = None) -> None:
        """Delete the schedule; tasks it has started stay.

        Raises:
            NotFound: there is no such schedule.
            StaleVersion: it is not at `if_version`.
        """
        while True:
            kept = await self._existing(id)
            require_version("schedule", id, if_version, kept.value)
            if await self._shelf.drop(kept):
                return

    async def add(
        self,
        id: str,
        function: str,
        arguments: Mapping[str, Any] = {},
        *,
        version: int | None = None,
        cron: str = "",
        tz: str = "UTC",
        every: Duration | None = None,
        missed: Missed = "once",
        overlap: bool = False,
        queue: str = "default",
        priority: int = 0,
        if_version: int | None = None,
    ) -> Schedule:
        """Store a schedule for a function that this process need not know, by its name; `cron` or `every` says when.

        Without a version it is the newest one that a live worker knows. The arguments are checked against what workers
        announce about the function. With `if_version` only that version of the schedule is changed; 0 means that there
        must not be one yet.

        Raises:
            NotFound: no version was given, and no live worker knows the function; nothing was written.
            InvalidInput: the arguments, or when to start it, are not valid; nothing was written.
            StaleVersion: the schedule is not at `if_version`; nothing was written.
        """
        if bool(cron) == (every is not None):
            raise InvalidInput("a schedule has either cron or every", do='write cron="0 9 * * *", or every="1h"')
        _check_schedule_id(id)
        chosen, encoded = await encode_call(self._store, function, version, arguments)
        check_id(queue, "queue")
        plan = Plan(function=function, version=chosen, arguments=encoded, queue=queue, priority=priority)
        draft = ScheduleDraft(self._tasks, id, plan).only_if(if_version)
        if every is not None:
            return await draft.every(every, missed=missed, overlap=overlap)
        return await draft.cron(cron, tz=tz, missed=missed, overlap=overlap)

    async def run_now(self, id: str, *, key: str | None = None) -> str:
        """Start an extra run now, which this process need not know the function for. Returns the id of its task. Said
        again with the same key, it gives the same task.

        Raises:
            NotFound: there is no such schedule.
        """
        plan, now = (await self._existing(id)).value, await self._store.wall_ms()
        task_id = tick_id(id, now)
        if key is not None:
            named = hashlib.blake2b(check_id(key, "key").encode(), digest_size=8).hexdigest()
            task_id = f"{id}@run-{named}"
            if await find_row(self._store, task_id) is not None:
                return task_id
        options: dict[str, Any] = {"queue": plan.queue, "priority": plan.priority, "module": plan.module}
        tags = {"schedule": id, "tick": tick_name(now)}
        call = (plan.function, plan.version, plan.arguments)
        await start_encoded(self._tasks, task_id, *call, **options, tags=tags)
        return task_id

    async def _change(self, id: str, change: Callable[[Plan, int], Plan]) -> Schedule:
        while True:
            kept, now = await self._existing(id), await self._store.wall_ms()
            plan = change(kept.value, now)
            if await self._shelf.change(kept, plan, due_at=next_look(plan)):
                return await view(self._store, id, plan)

    async def _existing(self, id: str) -> Kept[Plan]:
        kept = await self._shelf.get(id)
        if kept is None:
            raise NotFound("schedule", id, self._store.place, do="`perdure schedule list` shows what is there")
        return kept


# ── for workers and for runs ─────────────────────────────────────────────────────────────────────


def shelf_of(store: Store) -> Shelf[Plan]:
    return Shelf(store, KIND, Plan)


def version_of(kept: Plan | Trigger) -> int:
    """A number that differs when the definition does; what happens by it does not change it. Never 0."""
    moving = {"last", "anchor", "runs", "skipped", "open", "state", "begun", "seen"}
    said = [(name, getattr(kept, name)) for name in kept.__struct_fields__ if name not in moving]
    return int.from_bytes(hashlib.blake2b(repr(said).encode(), digest_size=6).digest()) | 1


def require_version(kind: str, id: str, expected: int | None, kept: Plan | Trigger | None) -> None:
    """
    Raises:
        StaleVersion: the schedule is at another version than `if_version`.
    """
    found = 0 if kept is None else version_of(kept)
    if expected is not None and found != expected:
        raise StaleVersion(id, expected, found, kind=kind)


def next_look(plan: Plan) -> int | None:
    """When a worker should look at the schedule again; None: not before it is changed."""
    if plan.open:
        # In every round: the result is stored with the schedule as soon as the task has ended, because that task may be
        # deleted, and the next tick may be waiting for its end.
        return 0
    return None if plan.is_paused else plan.next_after(plan.last)


async def fire(tasks: Tasks, id: str, plan: Plan, tick: int) -> bool:
    """Start a tick's task if it does not exist yet. Returns False when this process does not know the function."""
    function = function_for(plan.function, plan.version, plan.module)
    if function is None:
        return False
    args, kwargs = function.signature.decode_arguments(plan.arguments)
    chosen = function.options(queue=plan.queue, priority=plan.priority)
    tags = {"schedule": id, "tick": tick_name(tick)}
    try:
        await start(tasks, tick_id(id, tick), chosen, args, kwargs, tags=tags)
    except Conflict as taken:
        # The schedule was changed while another worker fired this tick, or a person's task has the id.
        log.warning("schedule %s: the tick of %s is not started: %s", id, tick_name(tick), taken.what)
    return True


async def with_results(store: Store, plan: Plan, *, before: str | None = None) -> Plan:
    """The plan with the results of its runs since the last look; with `before`, only of runs before that task."""
    state, still = plan.state, []
    for id in plan.open:
        if id == before:
            break
        row = await store.row(TaskRow, "get_task", namespace=store.namespace, id=id)
        if row is not None and row.status == "completed":
            state = _left_by(store, row, state)
        elif row is not None and row.status in ("pending", "running", "paused"):
            still.append(id)
    return replace(plan, state=state, open=still[-_MOST_OPEN:])


def _left_by(store: Store, row: TaskRow, otherwise: Any) -> Any:
    """What the task returned; if it returned nothing, the state stays as it was."""
    try:
        value = store.unseal(row.uid, "result", row.result) if row.result is not None else None
    except InvalidInput as problem:
        log.warning("cannot carry the result of task %s to the next run: %s", row.id, problem.what)
        return otherwise
    return otherwise if value is None else value


async def view(store: Store, id: str, plan: Plan) -> Schedule:
    plan = await with_results(store, plan)
    tick = None if plan.is_paused else plan.next_after(plan.last)
    return Schedule(
        id=id,
        function=plan.function,
        cron=plan.cron,
        tz=plan.zone,
        every=timedelta(milliseconds=plan.every_ms) if plan.every_ms else None,
        missed=plan.missed,
        overlaps=plan.overlaps,
        is_paused=plan.is_paused,
        next_at=None if tick is None else moment(tick),
        last_at=moment(plan.last) if plan.runs or plan.skipped else None,
        runs=plan.runs,
        skipped=plan.skipped,
        open=plan.open,
        state=plan.state,
        function_version=plan.version,
        queue=plan.queue,
        version=version_of(plan),
    )


async def scheduled() -> Tick | None:
    """Inside a durable function: the tick and the schedule that started it, and what the task of the tick before it
    returned.

    It is recorded, so a replay gets the same. None when the task was not started by a schedule.
    """
    scope = current.get()
    if scope is None or scope.is_body:
        raise InvalidInput("scheduled() is called outside a durable function, or inside a step")
    attempt = scope.attempt

    async def find() -> Tick | None:
        row = await current_row(attempt.store, attempt.task_id, attempt.uid)
        tags = json.loads(row.tags)
        if "schedule" not in tags or "tick" not in tags:
            return None
        kept = await shelf_of(attempt.store).get(tags["schedule"])
        plan = await with_results(attempt.store, kept.value, before=attempt.task_id) if kept else None
        at = datetime.fromisoformat(tags["tick"])
        return Tick(schedule=tags["schedule"], at=moment(to_ms(at)), state=plan.state if plan else None)

    found: Tick | None = await recorded_call(scope, "scheduled", Tick | None, find)
    return found
