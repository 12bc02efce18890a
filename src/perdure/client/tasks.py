"""`app.tasks` of a server elsewhere: the verbs, the handles and the records of the library, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

import msgspec

from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.encoding.json_values import plain
from perdure._ground.ids import check_id
from perdure._model import (
    ENDING,
    FINISHED,
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
from perdure._tasks import Task, Tasks, check_beginning, check_texts
from perdure.client.holder import RemoteHolding
from perdure.client.list_pages import some
from perdure.client.requests import address_of, event_of, keyed, path_of, record_of
from perdure.client.streams import listen
from perdure.client.task import RemoteTask
from perdure.client.transport import Reply, Transport
from perdure.errors import InvalidInput, NotFound, TaskFailed, TimedOut

Json = Any
_LONGEST_POLL = 30.0  # seconds
_EVENTS = 200  # events of one request


def _query_of(filter: TaskFilter | None) -> dict[str, Any]:
    """The filter as parameters; fields that let every task through are left out."""
    given = {} if filter is None else msgspec.structs.asdict(filter)
    tags = given.pop("tags", {})
    return {
        **{name: value for name, value in given.items() if value},
        **{f"tag.{key}": text for key, text in tags.items()},
    }


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
        check_beginning(status)
        check_texts(name=name, description=description, agent=agent)
        check_texts(**{f"tag {key}": text for key, text in tags.items()})
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
        reply = await self._transport.send("POST", "/v1/tasks", body, headers=keyed(once, path_of(id)))
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
        if type(after) is not int or after < 0 or (limit is not None and (type(limit) is not int or limit < 1)):
            raise InvalidInput(f"after is {after!r} and limit {limit!r}; give numbers from 0 and from 1")
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
        """True if the task has ended, and nothing has happened to it after this event."""
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
        hidden: bool = False,
    ) -> Page[TaskRecord]:
        wanted = TaskFilter(
            status=frozenset({status} if status else ()),
            reason=frozenset({reason} if reason else ()),
            agent=agent,
            tags=tags,
            since=since,
            archived=archived,
            hidden=hidden,
        )
        if not 1 <= limit <= 1000:
            raise InvalidInput(f"limit is {limit}; it lies between 1 and 1000")
        query = {**_query_of(wanted), "sort": "newest", "cursor": cursor}
        items, after = await some(self._transport, "/v1/tasks", limit, query)
        found = [await self._transport.get(f"/v1/tasks/~{item['uid']}") for item in items]
        return Page([record_of(reply.value) for reply in found], after)

    async def family(self, task: str | Task, *, limit: int = 500) -> Family:
        found = await self._transport.get(f"{address_of(task)}/family", limit=limit)
        return msgspec.convert(found.value, Family)

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
        return RemoteTask(self._transport, self._holding, reply, created=created)
