"""`app.tasks` of a server elsewhere: the verbs, the handles and the records of the library, over HTTP."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any
from urllib.parse import quote

import msgspec

from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.ids import check_id
from perdure._ground.json_values import plain
from perdure._model import (
    ENDING,
    FINISHED,
    Change,
    Config,
    Counts,
    DryRun,
    Event,
    Facets,
    Family,
    FirstStatus,
    InboxItem,
    Page,
    Part,
    Reason,
    Sort,
    Status,
    TaskFilter,
    TaskRecord,
    TaskSummary,
    event_kind,
    seq_of,
)
from perdure._tasks import Inbox, Task, TaskFrames, Tasks
from perdure.client.holder import RemoteHolding
from perdure.client.streams import listen
from perdure.client.transport import Reply, Transport
from perdure.errors import InvalidInput, NotFound, RecordDamaged, TaskFailed, TimedOut
from perdure.types import Checkpoint, ToolCall

Json = Any
_LONGEST_POLL = 30.0  # seconds
_EVENTS = 200  # events of one request


def path_of(id: str) -> str:
    """The address of a task. An id of dots only would be taken for a step in the path, and is escaped."""
    escaped = quote(check_id(id), safe="")
    return f"/v1/tasks/{escaped.replace('.', '%2E') if set(id) <= {'.'} else escaped}"


def address_of(task: str | Task) -> str:
    """The address of a task; a handle stands for exactly its own task."""
    return f"/v1/tasks/~{task.uid}" if isinstance(task, Task) else path_of(task)


def event_of(task_id: str, item: dict[str, Any]) -> Event:
    kind = event_kind(item["kind"])
    return msgspec.convert({"task_id": task_id, "data": None, **item, "kind": kind}, Event)


def record_of(value: Any) -> TaskRecord:
    return msgspec.convert(value, TaskRecord, strict=False)


def _query_of(filter: TaskFilter | None) -> dict[str, Any]:
    """The filter as parameters; fields that let every task through are left out."""
    given = {} if filter is None else msgspec.structs.asdict(filter)
    tags = given.pop("tags", {})
    return {
        **{name: value for name, value in given.items() if value},
        **{f"tag.{key}": text for key, text in tags.items()},
    }


def keyed(once: str | None) -> dict[str, str]:
    return {} if once is None else {"Idempotency-Key": once}


class RemoteTasks(Tasks):
    """The tasks of one namespace behind a server; the namespace is the key's."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._holding = RemoteHolding(transport)

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
        body = {
            "id": check_id(id),
            "state": state,
            "name": name,
            "description": description,
            "agent": agent,
            "tags": dict(tags),
            "depends_on": list(depends_on),
            **({"config": plain(config)} if config is not None else {}),
            **({"status": status} if status != "running" else {}),
        }
        reply = await self._transport.send("POST", "/v1/tasks", body, headers=keyed(once))
        return self._task(reply, created=True)

    async def open(self, id: str, *, state: Json = None, again: bool = False) -> Task:
        body = {"id": check_id(id), "mode": "again" if again else "open", "state": {} if state is None else state}
        reply = await self._transport.send("POST", "/v1/tasks", body)
        return self._task(reply, created=reply.status == 201)

    # ── finding ─────────────────────────────────────────────────────────────────────────────────

    async def get(self, id: str, *, archived: bool = False) -> TaskRecord | None:
        try:
            record = record_of((await self._transport.get(path_of(id))).value)
        except NotFound:
            return None
        return None if record.archived_at is not None and not archived else record

    async def handle(self, id: str) -> Task:
        return self._task(await self._transport.get(path_of(id)), created=False)

    async def handle_by_uid(self, uid: str) -> Task:
        return self._task(await self._transport.get(f"/v1/tasks/~{quote(uid, safe='')}"), created=False)

    async def history(self, id: str) -> Sequence[TaskRecord]:
        try:
            reply = await self._transport.get(f"{path_of(id)}/history")
        except NotFound:
            return []
        return [record_of(item) for item in reply.value["items"]]

    async def events(self, id: str | Task, *, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        found: list[Event] = []
        task_id = id.id if isinstance(id, Task) else id
        path = f"{address_of(id)}/events"
        while limit is None or len(found) < limit:
            most = _EVENTS if limit is None else min(_EVENTS, limit - len(found))
            page = (await self._transport.get(path, after=after, limit=most)).value
            found += [event_of(task_id, item) for item in page["items"]]
            if page["next"] is None:
                break
            after = int(page["next"])
        return found

    async def follow(self, id: str | Task, *, after: int = 0) -> AsyncIterator[Event]:
        task_id = id.id if isinstance(id, Task) else id
        for event in await self.events(id, after=after):
            yield event
            after = event.number
        if await self._has_ended(id, after):
            return
        query = {"after": f"e{after}.j1.0", "parts": "events"}
        async for told in listen(self._transport, f"{address_of(id)}/stream", query):
            if told.event == "gone":
                return
            if told.event == "event":
                event = event_of(task_id, told.data)
                yield event
                if event.kind in ENDING and await self._has_ended(id, event.number):
                    return

    async def _has_ended(self, id: str | Task, number: int) -> bool:
        """Whether the task has ended, and nothing has happened to it after this event."""
        status = (await self._transport.get(address_of(id))).value["status"]
        return status in FINISHED and not await self.events(id, after=number, limit=1)

    async def page(
        self,
        filter: TaskFilter | None = None,
        *,
        sort: Sort = "newest",
        limit: int = 50,
        cursor: str | None = None,
        parts: Collection[Part] = (),
    ) -> Page[TaskSummary]:
        query = {**_query_of(filter), "sort": sort, "limit": limit, "cursor": cursor, "parts": list(parts)}
        found = (await self._transport.get("/v1/tasks", **query)).value
        items = [msgspec.convert(item, TaskSummary, strict=False) for item in found["items"]]
        return Page(items, found["next"], found["approximate"])

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
    ) -> Page[TaskRecord]:
        wanted = TaskFilter(
            status=frozenset({status} if status else ()),
            reason=frozenset({reason} if reason else ()),
            agent=agent,
            tags=tags,
            since=since,
            archived=archived,
        )
        page = await self.page(wanted, limit=limit, cursor=cursor)
        records = [await self.handle_by_uid(item.uid) for item in page.items]
        return Page([await task.record() for task in records], page.cursor, page.approximate)

    async def family(self, task: str | Task, *, limit: int = 500) -> Family:
        path = task._path if isinstance(task, RemoteTask) else path_of(task if isinstance(task, str) else task.id)
        return msgspec.convert((await self._transport.get(f"{path}/family", limit=limit)).value, Family)

    async def counts(self, filter: TaskFilter | None = None) -> Counts:
        return msgspec.convert((await self._transport.get("/v1/counts", **_query_of(filter))).value, Counts)

    async def facets(self) -> Facets:
        return msgspec.convert((await self._transport.get("/v1/facets")).value, Facets)

    async def wait_for(self, id: str, *, status: Status = "completed", timeout: Duration | None = None) -> TaskRecord:
        limit = require_timedelta("timeout", timeout)
        left = None if limit is None else limit.total_seconds()
        while True:
            poll = _LONGEST_POLL if left is None else max(0.0, min(left, _LONGEST_POLL))
            reply = await self._transport.get(f"{path_of(id)}/wait", status=status, timeout=poll)
            record = record_of(reply.value["task"])
            if record.status == status:
                return record
            if record.is_finished:
                raise TaskFailed(id, record.status, status, record.error)
            if left is not None and (left := left - poll) <= 0:
                raise TimedOut(
                    f"task {id!r} is {record.status} after {timeout}; {status} was waited for",
                    kept="the task goes on",
                    do="wait longer, or look at it with `perdure show`",
                )

    async def deliver(self, token: str, value: Json = None, *, by: str = "") -> bool:
        reply = await self._transport.send("POST", f"/v1/callbacks/{quote(token, safe='')}", value, is_bodied=True)
        return bool(reply.value["counted"])

    def _task(self, reply: Reply, *, created: bool) -> Task:
        return RemoteTask(self, record_of(reply.value), created=created)


class RemoteTask(Task):
    """One task behind a server."""

    def __init__(self, tasks: RemoteTasks, record: TaskRecord, *, created: bool) -> None:
        self._remote, self._transport = tasks, tasks._transport
        self._fence: str | None = None
        self.created = created
        self._take(record)

    def _take(self, record: TaskRecord) -> TaskRecord:
        self.id, self.uid, self.status, self.state = record.id, record.uid, record.status, record.state
        self._base_seq = record.latest.seq if record.latest is not None else 0
        self._version = record.version
        return record

    @property
    def _path(self) -> str:
        return f"/v1/tasks/~{self.uid}"

    async def record(self) -> TaskRecord:
        return self._take(record_of((await self._transport.get(self._path)).value))

    # ── an attempt's writes ─────────────────────────────────────────────────────────────────────

    def attempt(self, *, take_over: bool = False) -> AbstractAsyncContextManager[Task]:
        return self._attempt(take_over)

    @asynccontextmanager
    async def _attempt(self, take_over: bool) -> AsyncIterator[Task]:
        holding = self._remote._holding
        begun = await holding.begin(self._path, take_over=take_over)
        self._fence = begun["fence"]
        self._take(record_of(begun["task"]))
        try:
            yield self
        finally:
            fence, self._fence = self._fence, None
            await holding.give_back(self._path, fence)

    async def checkpoint(
        self,
        state: Json,
        *,
        label: str = "",
        plan: Json = None,
        memory: Json = None,
        partial: Json = None,
        pending: Sequence[ToolCall] = (),
        once: str | None = None,
    ) -> Checkpoint:
        body = {
            "state": state,
            "base": self._base_seq,
            "label": label,
            "plan": plan,
            "memory": memory,
            "partial": partial,
            "pending": plain(list(pending)),
        }
        return self._made(await self._write("POST", "checkpoints", body, keyed(once)))

    async def append(
        self, path: str | Sequence[str | int], item: Json, *, label: str = "", once: str | None = None
    ) -> Checkpoint:
        body = {"path": path if isinstance(path, str) else list(path), "item": item, "label": label}
        return self._made(await self._write("POST", "append", body, keyed(once)))

    def _made(self, value: Any) -> Checkpoint:
        made = msgspec.convert(value, Checkpoint, strict=False)
        self.state, self._base_seq = made.data, made.seq
        return made

    async def mark_progress(
        self,
        operation: str,
        *,
        percent: float | None = None,
        cursor: Json = None,
        done: int | None = None,
        total: int | None = None,
    ) -> None:
        body = {"operation": operation, "percent": percent, "cursor": cursor, "done": done, "total": total}
        await self._write("PUT", "progress", body)

    async def complete(self, result: Json = None, *, once: str | None = None) -> None:
        self._take(record_of(await self._write("POST", "complete", {"result": result}, keyed(once))))

    async def fail(self, error: Json, *, once: str | None = None) -> None:
        said = {"type": type(error).__name__, "message": str(error)} if isinstance(error, BaseException) else error
        self._take(record_of(await self._write("POST", "fail", {"error": said}, keyed(once))))

    # ── control ─────────────────────────────────────────────────────────────────────────────────

    async def pause(
        self,
        message: str,
        *,
        reason: Reason = "human_input",
        checkpoint: Json = None,
        once: str | None = None,
        **payload: Json,
    ) -> None:
        now = bool(payload.pop("now", False))
        body = {"message": message, "reason": reason, "payload": plain(payload), "now": now, "checkpoint": checkpoint}
        self._take(record_of(await self._write("POST", "pause", body, keyed(once))))

    async def resume(
        self,
        *,
        state: Mapping[str, Json] | None = None,
        checkpoint: str | None = None,
        instruction: str | None = None,
        once: str | None = None,
    ) -> None:
        body = {"state": dict(state) if state else None, "checkpoint": checkpoint, "instruction": instruction}
        await self._steer("resume", body, once, is_matched=bool(state) or checkpoint is not None)

    async def instruct(self, text: str, *, once: str | None = None) -> None:
        await self._write("POST", "instruct", {"text": text}, keyed(once))

    async def cancel(self, *, undo: bool = True, dry_run: bool = False) -> DryRun | None:
        if dry_run:
            return _dry_run(await self._write("POST", "cancel", {"undo": undo, "dry_run": True}))
        self._take(record_of(await self._write("POST", "cancel", {"undo": undo})))
        return None

    async def rollback(
        self, to: str, *, undo: bool | None = None, dry_run: bool = False, once: str | None = None
    ) -> DryRun | None:
        body = {"to": to, "effects": None if undo is None else "undo" if undo else "keep"}
        if dry_run:
            match = {"If-Match": f'"v{(await self.record()).version}"'}
            return _dry_run(await self._write("POST", "rollback", {**body, "dry_run": True}, match))
        await self._steer("rollback", body, once, is_matched=True)
        return None

    async def _steer(self, verb: str, body: Json, once: str | None, *, is_matched: bool) -> None:
        """A verb that must not hit another state than the one it was meant for."""
        headers = {"If-Match": f'"v{(await self.record()).version}"'} if is_matched else {}
        self._take(record_of(await self._write("POST", verb, body, {**headers, **keyed(once)})))

    async def fork(
        self, id: str, *, at: str | None = None, set: Mapping[str, Json] = {}, once: str | None = None
    ) -> Task:
        body = {"id": id, "at": at, "set": dict(set)}
        reply = await self._transport.send("POST", f"{self._path}/fork", body, headers=keyed(once))
        return RemoteTask(self._remote, record_of(reply.value), created=True)

    async def signal(self, name: str, value: Json = None, *, once: str | None = None) -> None:
        await self._write("POST", "signal", {"name": name, "value": value}, keyed(once))

    # ── questions ───────────────────────────────────────────────────────────────────────────────

    async def answer(self, value: Json, *, by: str = "", key: str | None = None, once: str | None = None) -> None:
        """As in this process; it is signed with the name of the API key, whatever `by` says."""
        question = await self._question(None, key)
        if question.kind == "effect":
            said = value if isinstance(value, Mapping) else {"choice": value}
            choice, result = said.get("choice"), said.get("value")
            await self._questions.settle(question.id, choice, value=result, once=once)  # type: ignore[arg-type]
        else:
            await self._questions.answer(question.id, value, once=once)

    async def approve(self, *, by: str, comment: str = "", edited: Json = None, once: str | None = None) -> None:
        """As in this process; it is signed with the name of the API key, whatever `by` says."""
        question = await self._question("approval", None)
        await self._questions.approve(question.id, comment=comment, edited=edited, once=once)

    async def reject(self, *, by: str, comment: str = "", once: str | None = None) -> None:
        """As in this process; it is signed with the name of the API key, whatever `by` says."""
        await self._questions.reject((await self._question("approval", None)).id, comment=comment, once=once)

    async def callback_token(self) -> str:
        return (await self._questions.token((await self._question("callback", None)).id)).token

    @property
    def _questions(self) -> Inbox:
        from perdure.client.inbox import RemoteInbox

        return RemoteInbox(self._transport)

    async def _question(self, kind: str | None, key: str | None) -> InboxItem:
        """The one open question of this kind, or of any that a person answers."""
        kinds = {kind} if kind is not None else {"approval", "input", "effect", "credential"}
        found = [one for one in await self._questions.of(self) if one.answer is None and one.kind in kinds]
        found = [one for one in found if key is None or key in (one.path, one.id, (one.details or {}).get("key"))]
        if not found:
            raise NotFound(
                "question of task", self.id, self._transport.url, do="`perdure where` says what it waits for"
            )
        if len(found) > 1:
            keys = ", ".join(one.path for one in found)
            raise InvalidInput(f"task {self.id!r} asks {len(found)} things", do=f"say which, by key: {keys}")
        return found[0]

    # ── history ─────────────────────────────────────────────────────────────────────────────────

    @property
    def frames(self) -> TaskFrames:
        from perdure.client.frames import RemoteFrames

        return RemoteFrames(self._transport, self._path)

    async def checkpoints(self) -> AsyncIterator[Checkpoint]:
        from perdure.client.past import RemoteCheckpoints

        door, after = RemoteCheckpoints(self._transport), 0
        while True:
            page = await door.page(self, after=after, limit=200)
            for info in page.items:
                try:
                    parts = await door.get(self, info.seq)
                except (NotFound, RecordDamaged):
                    continue
                held = {"data" if name == "state" else name: part for name, part in parts.items()}
                yield msgspec.convert(
                    {**plain(info), **held, "pending": held["pending"] or ()}, Checkpoint, strict=False
                )
            if page.cursor is None:
                return
            after = int(page.cursor)

    async def diff(self, a: str, b: str) -> Sequence[Change]:
        from perdure.client.past import RemoteCheckpoints

        return (await RemoteCheckpoints(self._transport).diff(self, a, b, limit=10_000)).changes

    async def invalidate_if(self, predicate: Callable[[Checkpoint], bool | Awaitable[bool]]) -> Sequence[str]:
        stale = []
        match = {"If-Match": f'"v{(await self.record()).version}"'}
        async for checkpoint in self.checkpoints():
            verdict = predicate(checkpoint) if checkpoint.valid and checkpoint.seq else False
            if await verdict if inspect.isawaitable(verdict) else verdict:
                stale.append(checkpoint)
        if stale:
            numbers = {"numbers": [one.seq for one in stale]}
            self._take(record_of(await self._write("POST", "invalidate", numbers, match)))
        return [one.id for one in stale]

    async def pin(self, checkpoint: str, *, pinned: bool = True) -> None:
        seq = seq_of(self.uid, str(checkpoint))
        if seq is None:
            raise NotFound("checkpoint", str(checkpoint), self._transport.url)
        await self._transport.send("PUT" if pinned else "DELETE", f"{self._path}/checkpoints/{seq}/pin")

    async def archive(self) -> None:
        self._take(record_of(await self._write("POST", "archive", None)))

    async def delete(self, *, force: bool = False) -> None:
        match = {"If-Match": f'"v{(await self.record()).version}"'}
        await self._transport.send("DELETE", self._path, query={"force": force}, headers=match)

    async def _write(self, method: str, verb: str, body: Json, headers: Mapping[str, str] | None = None) -> Any:
        fence = {"Perdure-Fence": self._fence} if self._fence else {}
        reply = await self._transport.send(method, f"{self._path}/{verb}", body, headers={**fence, **(headers or {})})
        return reply.value


def _dry_run(value: Mapping[str, Any]) -> DryRun:
    """What the server rehearsed. Calls that the caller may not read are empty."""
    parts = ("undone", "kept", "uncertain")
    shown = {name: [{"call": "", **effect} for effect in value[name]] for name in parts}
    return msgspec.convert({**value, **shown}, DryRun)
