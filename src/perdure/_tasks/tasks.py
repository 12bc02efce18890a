"""`app.tasks`: find tasks, begin them, wait for them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.encoding import codec
from perdure._ground.ids import check_id, is_uid, new_uid
from perdure._model import (
    FINISHED,
    Changes,
    Config,
    Counts,
    Event,
    Facets,
    Family,
    FirstStatus,
    Page,
    Part,
    Reason,
    Sort,
    Status,
    TaskFilter,
    TaskRecord,
    TaskSummary,
)
from perdure._store import EventRow, Store, TaskRow
from perdure._tasks import leases, records
from perdure._tasks import task_drafts as drafts
from perdure._tasks.core import Key, newest_state, state_in
from perdure._tasks.dependencies import has_to_wait
from perdure._tasks.lists import count, every_row, read_changes, read_facets, read_family, read_page
from perdure._tasks.once import Once, once_of
from perdure._tasks.pauses import callbacks
from perdure._tasks.state import snapshots
from perdure._tasks.task import Task, TaskHome, TaskHooks
from perdure._tasks.task_arguments import check_beginning, check_status, check_texts, is_storable
from perdure._tasks.task_row import current_row, deadline_of, find_row
from perdure.errors import AlreadyExists, InvalidInput, KeyReused, NotFound, TaskFailed, TimedOut

if TYPE_CHECKING:  # few programs have handlers
    from perdure._tasks.values import Handlers

Json = Any

_TAKEN = {"epoch": 1}  # the event data of a task that its creator carries out


class Tasks(TaskHome):
    """The tasks of one namespace in one store."""

    def __init__(self, store: Store, hooks: TaskHooks | None = None) -> None:
        self._store = store
        self._hooks = hooks or TaskHooks()
        self._drafts = {}
        self._handlers: Handlers | None = None

    # ── beginning ───────────────────────────────────────────────────────────────────────────────

    async def create(
        self,
        id: str,
        *,
        state: Json,
        status: FirstStatus = "running",
        name: str = "",
        description: str = "",
        agent: str = "",
        tags: Mapping[str, str] = {},
        config: Config | None = None,
        depends_on: Sequence[str] = (),
        once: str | None = None,
    ) -> Task:
        """A new task. It begins as `running`, or as `pending` if its `status` says so, until its first attempt.
        While tasks it depends on have not completed, it is `pending`, whatever was asked for.

        Raises:
            AlreadyExists: the id is in use; nothing was changed.
            InvalidId, InvalidInput, NotStorable, TooLarge, DependencyCycle: nothing was written.
        """
        check_beginning(status)
        options = (status, name, description, agent, dict(tags), repr(config), list(depends_on))
        return await self._create_from(
            id,
            state=state,
            status=status,
            name=name,
            description=description,
            agent=agent,
            tags=tags,
            config=config,
            depends_on=depends_on,
            once=once_of(once, "create", id, state, *options),
        )

    async def _create_from(self, id: str, *, state: Json, **what: Any) -> Task:
        """Create, for other beginnings too: a fork says where it comes from."""
        check_id(id)
        task = await self._insert("create_task", id, state, **what)
        task = task or await self._made_before(id, what.get("once"))
        if task is None:
            found = await find_row(self._store, id)
            raise AlreadyExists(id, found.status if found else "gone again")
        return task

    async def _made_before(self, id: str, once: Once | None) -> Task | None:
        row = await find_row(self._store, check_id(id)) if once is not None else None
        if row is None or once is None:
            return None
        try:
            found = await once.was_done(self._store, id, row.uid)
        except KeyReused as reused:
            if reused.kind == "created":
                raise
            return None  # the key was used on the task, and not to make it
        return await self._attach(row) if found is not None and found.number == 1 else None

    async def open(self, id: str, *, state: Json = None, again: bool = False) -> Task:
        """The task with this id, made now if there is none; never changes a status.

        A finished one is returned as finished; with `again` a new one takes its place, and the old one
        stays in history.
        """
        check_id(id)
        first = {} if state is None else state
        while True:
            row = await find_row(self._store, id)
            if row is None:
                task = await self._insert("create_task", id, first)
            elif again and row.status in FINISHED:
                task = await self._insert("restart_task", id, first, old=row.uid)
            else:
                return await self._attach(row)
            if task is not None:
                return task

    async def _insert(
        self,
        verb: str,
        id: str,
        state: Json,
        *,
        old: str | None = None,
        cause: str = "created",
        origin: Mapping[str, Any] | None = None,
        status: FirstStatus = "running",
        name: str = "",
        description: str = "",
        agent: str = "",
        tags: Mapping[str, str] = {},
        config: Config | None = None,
        depends_on: Sequence[str] = (),
        call: Callable[[str], Mapping[str, Any]] | None = None,
        here: bool = False,
        alike: object = None,
        once: Once | None = None,
    ) -> Task | None:
        """The new task's row; None if the id is in use.

        `here`: this process carries it out and has its lease from the beginning, if nothing has to be waited for.
        `call`: the columns of the durable function that it carries out, for its uid.
        `alike`: what begins so again differs in its id and arguments only (task_drafts.py).
        """
        store = self._store
        if description != "" or agent != "" or type(name) is not str or not is_storable(name):
            check_texts(name=name, description=description, agent=agent)
        if tags:
            check_texts(**{f"tag {k}": v for k, v in tags.items()})
            check_texts(**{f"the name of a tag, {name!r},": name for name in tags})
        must_wait = await has_to_wait(store, id, depends_on) if depends_on else False
        here = here and not must_wait
        uid = new_uid(store.clock.now_ms())
        first = snapshots.first(store, uid, id, state)
        if first.frame.parts:
            await snapshots.put_chunks(store, uid, first.frame, id)
        told = codec.encode({**(_TAKEN if here else {}), **(origin or {})})
        params = {
            **store.event(uid, "created", told, agent=agent, once=once.mark if once is not None else ""),
            **first.columns,
            "cause": cause,
            "old": old,
            "namespace": store.namespace,
            "id": id,
            "status": "pending" if must_wait else status,
            "name": name,
            "description": description,
            "agent": agent,
            "tags": json.dumps(dict(tags), sort_keys=True) if tags else "{}",
            "config": store.seal(uid, "config", config, Config) if config is not None else None,
            "depends_on": json.dumps(list(dict.fromkeys(depends_on))) if depends_on else "[]",
        }
        size = 500 + len(first.columns["frame"])
        if call is not None:
            params.update(call(uid))
            size += len(params["arguments"])
            if here and not store.presence.is_registered:
                await store.presence.register()
            params.update(leases.holder_columns(store) if here else leases.NOBODY)
        write = store.verb(verb, uid, params, key=id, size=size)
        if await (leases.taking(store, write, id, uid) if here else write) is None:
            return None
        if alike is not None and here:
            drafts.keep(self, alike, params, told, first.snapshot, size)
        key = (id, uid, params["status"])
        task = Task(self, key, first.state, first.snapshot, agent)
        task._deadline_at = deadline_of(config, params["at"]) if call is None else None
        return task

    # ── finding ─────────────────────────────────────────────────────────────────────────────────

    async def get(self, id: str, *, archived: bool = False) -> TaskRecord | None:
        """The task's record, or None if there is none (or it is archived, and `archived` was not asked for)."""
        row = await find_row(self._store, check_id(id))
        if row is None or (row.archived_at is not None and not archived):
            return None
        return (await records.load(self._store, row))[0]

    async def handle(self, id: str) -> Task:
        """The task, which has to exist.

        Raises:
            NotFound: no such task; the message names the store.
        """
        row = await find_row(self._store, check_id(id))
        if row is None:
            raise NotFound("task", id, self._store.place)
        return await self._attach(row)

    async def handle_by_uid(self, uid: str) -> Task:
        """The task with this uid, also one whose id now belongs to another task.

        Raises:
            NotFound: no such task in this namespace.
        """
        row = await self._store.row(TaskRow, "get_task_by_uid", uid=uid)
        if row is None or row.namespace != self._store.namespace:
            raise NotFound("task", f"~{uid}", self._store.place)
        return await self._attach(row)

    async def history(self, id: str) -> Sequence[TaskRecord]:
        """Every task that ever had this id, newest first."""
        rows = await self._store.rows(TaskRow, "get_history", namespace=self._store.namespace, id=check_id(id))
        return [(await records.load(self._store, row))[0] for row in rows]

    async def list(
        self,
        *,
        status: Status | None = None,
        reason: Reason | None = None,
        agent: str | None = None,
        tags: Mapping[str, str] = {},
        since: datetime | None = None,
        limit: int = 100,
        cursor: str | None = None,
        archived: bool = False,
        hidden: bool = False,
    ) -> Page[TaskRecord]:
        """Tasks, newest first; `cursor` of one page begins the next. Nothing is shown twice or left out
        while tasks are added."""
        if not 1 <= limit <= 1000:
            raise InvalidInput(f"limit is {limit}; it lies between 1 and 1000")
        if cursor is not None and not is_uid(cursor):
            raise InvalidInput(f"{cursor!r} is not a cursor", do="give the cursor of the page before, or none")
        wanted = TaskFilter(
            status=[] if status is None else [status],
            reason=[] if reason is None else [reason],
            agent=agent,
            tags=tags,
            since=since,
            archived=archived,
            hidden=hidden,
        )
        found, after = await every_row(self._store, wanted, cursor, limit)
        uids = json.dumps([row.uid for row in found])
        rows = {row.uid: row for row in await self._store.rows(TaskRow, "tasks_of", uids=uids)} if found else {}
        listed = [rows[row.uid] for row in found if row.uid in rows]  # a task may have been deleted meanwhile
        return Page([await records.load_for_list(self._store, row) for row in listed], after)

    async def page(
        self,
        filter: TaskFilter | None = None,
        *,
        sort: Sort = "newest",
        limit: int = 50,
        cursor: str | None = None,
        parts: Collection[Part] = (),
    ) -> Page[TaskSummary]:
        """Summaries of tasks: rows only, so that large states cost nothing.

        sort    newest: created last first; changed: changed last first; due: looked at soonest first, of those
                that wait for a moment
        parts   pause: why a paused task waits; children: how many tasks it has started

        `cursor` of one page begins the next, with the same filter and sort. A page with few matches ends after 20,000
        tasks were looked at, and says `approximate`; its cursor continues with the rest. With a text, tasks whose ids
        begin with it are first.

        Raises:
            InvalidInput: the sort, the limit (1 to 1,000), a part or the cursor is not one.
        """
        return await read_page(self._store, filter, sort, limit, cursor, parts)

    async def counts(self, filter: TaskFilter | None = None) -> Counts:
        """The number of tasks by status and by reason; archived and hidden ones if the filter says so. With a filter
        the newest 20,000 of each status are counted, and the result says `approximate` if there are more."""
        return await count(self._store, filter)

    async def facets(self) -> Facets:
        """The functions, agents, tag keys and queues of the newest tasks, with how many have each."""
        return await read_facets(self._store)

    async def family(self, task: str | Task, *, limit: int = 500) -> Family:
        """The tasks that started this one, the newest that it has started, and those it depends on.

        Raises:
            NotFound: there is no such task.
            InvalidInput: the limit is not between 1 and 1,000.
        """
        if not 1 <= limit <= 1000:
            raise InvalidInput(f"limit is {limit}; it lies between 1 and 1,000")
        id, uid = (task.id, task.uid) if isinstance(task, Task) else (check_id(task), None)
        row = await find_row(self._store, id) if uid is None else await current_row(self._store, id, uid)
        if row is None:
            raise NotFound("task", id, self._store.place)
        return await read_family(self._store, row, limit)

    async def changes(self, after: str | datetime | None = None, limit: int = 200) -> Changes:
        """Tasks that have changed since the watermark of the changes before, or since a moment; earliest change first.

        Of several changes in one millisecond none is lost. A change can be committed after one with a later moment:
        who follows a store begins each time two seconds before the last one it has seen, and drops what it knows.
        """
        return await read_changes(self._store, after, limit)

    async def events(self, id: str | Task, *, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        """The events of a task, in order, with their authors: those after this number, at most `limit` of them.

        Raises:
            NotFound: there is no such task.
        """
        store, row = self._store, await self._row_of(id)
        most = (1 << 31) - 1 if limit is None else limit
        if type(after) is not int or type(most) is not int or after < 0 or most < 1:
            raise InvalidInput(f"after is {after!r} and limit {limit!r}; they are whole numbers, 0 and 1 at least")
        asked = {"uid": row.uid, "after": min(after, 1 << 62), "limit": min(most, 1 << 31)}
        rows = await store.rows(EventRow, "read_events", **asked)
        return [records.event(store, row.id, row.uid, found) for found in rows]

    async def follow(self, id: str | Task, *, after: int = 0) -> AsyncIterator[Event]:
        """Each event after this number as it happens, by whichever process, until the task has ended.

        Raises:
            NotFound: there is no such task.
        """
        store = self._store
        with store.bell.listening():
            while True:
                moves = store.bell.moves
                row = await self._row_of(id)  # before the events, so that they include the one that ends the task
                for event in await self.events(id, after=after):
                    yield event
                    after = event.number
                if row.status in FINISHED:
                    return
                await store.bell.moved_since(moves)

    async def _row_of(self, id: str | Task) -> TaskRow:
        if isinstance(id, Task):
            return await current_row(self._store, id.id, id.uid)
        row = await find_row(self._store, check_id(id))
        if row is None:
            raise NotFound("task", id, self._store.place)
        return row

    async def wait_for(self, id: str, *, status: Status = "completed", timeout: Duration | None = None) -> TaskRecord:
        """The record, as soon as the task has this status, whichever process works on it.

        Raises:
            TaskFailed: it has ended in another status.
            TimedOut: it did not get there in time; it continues.
        """
        check_status(status)
        limit, store = require_timedelta("timeout", timeout), self._store
        end = None if limit is None else store.clock.boottime() + limit.total_seconds()
        with store.bell.listening():
            return await self._reached(id, status, end, limit)

    async def _reached(self, id: str, status: Status, end: float | None, timeout: timedelta | None) -> TaskRecord:
        while True:
            moves = self._store.bell.moves
            row = await find_row(self._store, check_id(id))
            if row is None:
                raise NotFound("task", id, self._store.place)
            if row.status == status or row.status in FINISHED:
                record = (await records.load(self._store, row))[0]
                if record.status == status:
                    return record
                raise TaskFailed(id, record.status, status, record.error)
            if end is not None and self._store.clock.boottime() >= end:
                raise TimedOut(
                    f"task {id!r} is {row.status} after {timeout}; {status} was waited for",
                    kept="the task goes on",
                    do="wait longer, or look at it with `perdure show`",
                )
            left = self._store.clock.longest_wait if end is None else max(end - self._store.clock.boottime(), 0.0)
            await self._store.bell.moved_since(moves, min(left, self._store.clock.longest_wait))

    async def deliver(self, token: str, value: Json = None, *, by: str = "") -> bool:
        """Bring the answer of another system, by the token it was given. True when it counts; False when one has
        come before, or the task has ended.

        Raises:
            NotFound: there is no such token.
            NotAllowed: it was made for signed answers: `app.inbox.deliver` takes those.
            InvalidInput: the value does not fit; nothing was written, and the token is still good.
        """
        return await callbacks.deliver(self._store, token, value, by=by)

    # ── helpers ─────────────────────────────────────────────────────────────────────────────────

    def _untouched(self, id: str, uid: str) -> Task:
        """A durable function's task that has not begun, without reading it: its state is the first one."""
        first = snapshots.first(self._store, uid, id, {})
        return Task(self, (id, uid, "running"), first.state, first.snapshot, created=False)

    def _without_state(self, row: TaskRow) -> Task:
        """A durable function's task whose state was never written: it is the first one, and need not be read."""
        first = snapshots.first(self._store, row.uid, row.id, {})
        return self._as_in(row, first.state, first.snapshot)

    async def _attach(self, row: TaskRow) -> Task:
        return self._as_in(row, *await state_in(self._store, row))

    async def _by_uid(self, uid: str) -> Task:
        row, snapshot, state = await newest_state(self._store, uid)
        return self._as_in(row, state, snapshot)

    def _as_in(self, row: TaskRow, state: Json, snapshot: snapshots.Snapshot) -> Task:
        key: Key = (row.id, row.uid, row.status)  # type: ignore[assignment]
        task = Task(self, key, state, snapshot, agent=row.agent, created=False)
        task._take_after(row)
        return task


# ── for the rooms above ──────────────────────────────────────────────────────────────────────────


def tasks_of(task: Task) -> Tasks:
    """All tasks of the namespace that this one is in."""
    tasks = task._tasks
    assert isinstance(tasks, Tasks)
    return tasks


def handlers_in(tasks: Tasks) -> Handlers:
    """The handlers in this process that are told of events."""
    if tasks._handlers is None:
        from perdure._tasks.values import Handlers

        tasks._handlers = Handlers()
    return tasks._handlers


def hooks_of(tasks: Tasks) -> TaskHooks:
    """The hooks by which the rooms above extend the verbs of these tasks."""
    return tasks._hooks


def task_by_uid(tasks: Tasks, uid: str) -> Awaitable[Task]:
    """The task with this uid, with its newest state.

    Raises:
        RecordDamaged: there is no row with this uid.
    """
    return tasks._by_uid(uid)


def task_in_row(tasks: Tasks, row: TaskRow) -> Awaitable[Task]:
    """The task of a row that has just been read, with its newest state."""
    return tasks._attach(row)


async def record_in_row(tasks: Tasks, row: TaskRow) -> TaskRecord:
    """The whole record of a row that has just been read."""
    return (await records.load(tasks._store, row))[0]


def insert_task(tasks: Tasks, verb: str, id: str, state: Json, **what: Any) -> Awaitable[Task | None]:
    """A new task, made by this verb of the store; None when the id is in use."""
    return tasks._insert(verb, id, state, **what)


def untouched_task(tasks: Tasks, id: str, uid: str) -> Task:
    """A durable function's task that has had no attempt. It is not read: its state is the first one."""
    return tasks._untouched(id, uid)


def task_without_state(tasks: Tasks, row: TaskRow) -> Task:
    """A durable function's task that has only its first state, which is not read."""
    return tasks._without_state(row)
