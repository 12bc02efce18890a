"""Queue the messages of webhooks: one for each event that a webhook wants.

Nothing is sent here, so a receiver that is down holds up no event. How far each task's events were queued is kept in
the store, like the position of a handler. A message has the same id however often it is queued, and the store keeps
one. So each event is queued once, whatever dies when.

Changed tasks are found by the index of changes. A task whose change became visible late, or that another task has
replaced, is found by the sweep, which looks at all tasks every five minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

from perdure._ground.clock import to_ms
from perdure._ground.encoding.codec import stored_json
from perdure._model import Event, event_name
from perdure._store import CallRow, TaskRow, Write
from perdure._tasks import (
    HookFacts,
    HookMessage,
    KeptHook,
    Tasks,
    Undelivered,
    adding_delivery,
    events_after,
    hook_body,
    hook_wants,
    message_id,
    store_of,
    undelivered,
)

HANDLER = "~webhooks"  # no handler of `app.on` has a name that begins so
_PAGE = 200
_SWEEP_SECONDS = 300.0
# Changes become visible up to this much after the moment they carry.
_OVERLAP_MS = 2_000


class HookIntake:
    """Turns events of one namespace into messages."""

    def __init__(self, tasks: Tasks) -> None:
        self._store = store_of(tasks)
        self._swept: float | None = None
        self._seen_ms = 0

    async def round(self, hooks: Sequence[KeptHook]) -> int:
        """Queue what has happened since the last round. Returns how many messages were queued."""
        now = self._store.clock.boottime()
        began_ms = self._store.clock.now_ms()
        since = min(hook.record.made_at for hook in hooks)
        queued = 0
        if self._swept is None or now - self._swept >= _SWEEP_SECONDS:
            while found := await undelivered(self._store, HANDLER, since=since, ended_since=0, limit=_PAGE):
                queued += await self._queue(found, hooks)
                if len(found) < _PAGE:
                    break
            self._swept = now
        else:
            after = max(self._seen_ms - _OVERLAP_MS, since)
            asked = {"namespace": self._store.namespace, "handler": HANDLER, "since": after, "limit": _PAGE}
            while rows := await self._store.query("changed_undelivered", **asked):
                queued += await self._queue([Undelivered(uid, id, had) for uid, id, _, had in rows], hooks)
                if len(rows) < _PAGE:
                    break
        self._seen_ms = began_ms
        return queued

    async def _queue(self, tasks: Sequence[Undelivered], hooks: Sequence[KeptHook]) -> int:
        writes: list[Write] = []
        for task in tasks:
            writes += await self._writes(task, hooks)
        for write in writes:
            self._store.committer.submit(write)
        queued = 0
        for write in writes:
            queued += (await write is not None) and write.verb == "add_delivery"
        return queued

    async def _writes(self, task: Undelivered, hooks: Sequence[KeptHook]) -> list[Write]:
        """The writes that queue the events of a task, and then advance its position past them."""
        events = await events_after(self._store, task, has_to_be_whole=False)
        if not events:
            return []
        store, now = self._store, self._store.clock.now_ms()
        status, facts = await self._about(task.uid)
        writes: list[Write] = []
        for event in events:
            for hook in hooks:
                if _is_wanted(hook, event, facts):
                    id = message_id(hook.id, task.uid, event.number, to_ms(event.at))
                    body = hook_body(event, task.uid, status, with_data=hook.record.data)
                    message = HookMessage(id, hook.id, event_name(event.kind), body, task.uid, event.number)
                    writes.append(adding_delivery(store, message, now, task.id))
        params = {"handler": HANDLER, "delivered": events[-1].number}
        return [*writes, store.verb("deliver", task.uid, params, key=task.id)]

    async def _about(self, uid: str) -> tuple[str, HookFacts]:
        row = await self._store.row(TaskRow, "get_task_by_uid", uid=uid)
        if row is None:
            return "", HookFacts(None, "", {})
        call = await self._store.row(CallRow, "get_call", uid=uid)
        tags = stored_json(row.tags, f"the tags of task {row.id!r}", dict)
        return row.status, HookFacts(call.function if call is not None else None, row.agent, tags)


def _is_wanted(hook: KeptHook, event: Event, facts: HookFacts) -> bool:
    if to_ms(event.at) < hook.record.made_at:
        return False
    reason = event.data.get("reason") if isinstance(event.data, dict) else None
    return hook_wants(hook.record, event_name(event.kind), reason, facts)
