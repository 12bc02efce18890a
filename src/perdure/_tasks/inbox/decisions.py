"""Decide one pause, named by its id: the first decision stands, and no other pause is affected.

A question is answered by a write that also requires its line; a task's pause by one that requires the version that was
seen. A second caller is told who decided, when and what.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from perdure._ground.reach import new_secret
from perdure._model import FINISHED, CallbackToken, Event, InboxItem, Pause
from perdure._store import AskingTask, AttemptRow, CallRow, EventRow, PauseRow, Store, TaskRow
from perdure._tasks import records
from perdure._tasks.core import attach
from perdure._tasks.inbox.items import Asker, ended_item, paused_item, task_item
from perdure._tasks.inbox.pause_ids import PauseId, read_pause_id
from perdure._tasks.once import Once
from perdure._tasks.pauses import CALLBACK_TOPIC, answer_question, as_question, end_pause, make_token, path_now
from perdure.errors import AlreadyDecided, Conflict, InvalidInput, NotFound

Json = Any
_EVENTS_AT_ONCE = 200
_MOST_EVENTS = 10_000


class Found(NamedTuple):
    """A pause in its present state, with everything a decision about it depends on."""

    item: InboxItem
    task: TaskRow
    question: PauseRow | None  # None of a task that is paused by itself


async def find(store: Store, pause_id: str) -> Found:
    """The pause with this id, open or not.

    Raises:
        NotFound: there is none in this namespace, or its line was left and it went with it.
    """
    place = read_pause_id(pause_id)
    task = await store.row(TaskRow, "get_task_by_uid", uid=place.uid) if place is not None else None
    if place is None or task is None or task.namespace != store.namespace:
        raise _not_found(store, pause_id)
    asker = await _asker(store, task)
    if place.is_question:
        return await _find_question(store, task, place, pause_id, asker)
    return Found(await _find_pause(store, task, place, pause_id, asker), task, None)


async def _asker(store: Store, task: TaskRow) -> Asker:
    call = await store.row(CallRow, "get_call", uid=task.uid)
    if call is None:
        return Asker()
    parent = await store.row(TaskRow, "get_task_by_uid", uid=call.parent_uid) if task.hidden else None
    return Asker(call.function, parent.id if parent is not None else "")


async def _find_question(store: Store, task: TaskRow, place: PauseId, pause_id: str, asker: Asker) -> Found:
    path = path_now(task.line, place.number, place.path)
    for row in await store.rows(PauseRow, "read_pauses", uid=task.uid):
        if row.path == path:
            return Found(paused_item(store, task, row, asker), task, row)
    raise _not_found(store, pause_id)


async def _find_pause(store: Store, task: TaskRow, place: PauseId, pause_id: str, asker: Asker) -> InboxItem:
    events = await _events_since(store, task, place.number)
    if not events or (events[0].number, events[0].kind) != (place.number, "paused"):
        raise _not_found(store, pause_id)
    end = next((event for event in events[1:] if event.kind in _ENDS), None)
    return await _pause_of(store, task, events[0], end, asker)


async def _pause_of(store: Store, task: TaskRow, began: Event, end: Event | None, asker: Asker) -> InboxItem:
    if end is None and task.status == "paused" and task.pause is not None and task.pause_reason is not None:
        attempts = await store.rows(AttemptRow, "read_attempts", uid=task.uid)
        host, pid = (attempts[-1].host, attempts[-1].pid) if attempts else (None, None)
        columns = (task.uid, task.id, task.pause_reason, task.pause, task.due_at, task.updated_at, asker.function)
        return task_item(store, AskingTask(*columns, host, pid, began.number, asker.part_of))
    return ended_item(task, began, end, asker)


async def all_of(store: Store, task: TaskRow) -> Sequence[InboxItem]:
    """Every recorded pause of a task: the questions of its line, and the task's own pauses (among its first 10,000
    events)."""
    asker = await _asker(store, task)
    asked = [paused_item(store, task, row, asker) for row in await store.rows(PauseRow, "read_pauses", uid=task.uid)]
    texts = {item.text for item in asked}
    rows = await store.rows(EventRow, "read_events", uid=task.uid, after=0, limit=_MOST_EVENTS)
    events = [records.event(store, task.id, task.uid, row) for row in rows]
    by_itself = []
    for at, event in enumerate(events):
        if event.kind == "paused" and not (asker.function and _message(event) in texts):
            end = next((one for one in events[at + 1 :] if one.kind in _ENDS), None)
            by_itself.append(await _pause_of(store, task, event, end, asker))
    return sorted([*asked, *by_itself], key=lambda item: item.asked_at)


def _message(event: Event) -> str:
    return str(event.data.get("message", "")) if isinstance(event.data, dict) else ""


# The events that end the pause of a task; a later pause shows that the one before it is over.
_ENDS = frozenset({"resumed", "completed", "failed", "cancelled", "moved away", "rolled back", "paused"})


async def _events_since(store: Store, task: TaskRow, number: int) -> Sequence[Event]:
    """The event with this number, and those behind it up to the next one that ends a pause."""
    found: list[Event] = []
    while True:
        after = found[-1].number if found else number - 1
        rows = await store.rows(EventRow, "read_events", uid=task.uid, after=after, limit=_EVENTS_AT_ONCE)
        found += [records.event(store, task.id, task.uid, row) for row in rows]
        if len(rows) < _EVENTS_AT_ONCE or any(event.kind in _ENDS for event in found[1:]):
            return found


def _not_found(store: Store, pause_id: str) -> NotFound:
    return NotFound("question", str(pause_id)[:80], store.place, do="`perdure inbox` lists the open ones")


# ── deciding ─────────────────────────────────────────────────────────────────────────────────────


async def decide(
    store: Store, pause_id: str, value: Json, *, kinds: Sequence[str], by: str, comment: str, once: Once | None
) -> InboxItem:
    """Answer the pause, unless the request `once` has done so already. Returns its new state.

    Raises:
        NotFound: there is no such pause.
        InvalidInput: it is of another kind, or the answer does not fit; nothing was written.
        AlreadyDecided: another decision was first.
        Conflict: the task has ended.
    """
    while True:
        found = await find(store, pause_id)
        if once is not None and await once.was_done(store, found.task.id, found.task.uid) is not None:
            return found.item
        _require_open(found)
        _require_kind(found, kinds, value)
        if await _write(store, found, value, by=by, comment=comment, once=once):
            return (await find(store, pause_id)).item


def _require_open(found: Found) -> None:
    item, answer = found.item, found.item.answer
    if answer is not None:
        what = f"{answer.how} as {answer.decision}" if answer.how == "settled" else answer.how
        raise AlreadyDecided(item.task_id, item.id, answer.by, answer.at, what)
    if found.task.status in FINISHED and item.kind != "effect":
        raise Conflict(
            f"task {item.task_id!r} is {found.task.status}: nothing waits for an answer",
            kept="the task as it ended",
            do=f"`perdure show {item.task_id}` tells how it ended",
        )


_WAYS = {
    "approval": "approve or reject it",
    "input": "answer it",
    "credential": "answer it",
    "effect": "settle it as done, retry or fail",
    "outside": "resume the task",
    "diverged": "put the code back as it was, then resume the task",
}


def _require_kind(found: Found, kinds: Sequence[str], value: Json) -> None:
    item = found.item
    if item.kind not in kinds:
        raise InvalidInput(f"{item.text!r:.200} is of the kind {item.kind}", do=_WAYS.get(item.kind, "wait"))
    if item.unreadable:
        raise Conflict(f"the question cannot be read: {item.unreadable}", kept="the question as it is")
    is_over = item.kind == "effect" and found.task.status in FINISHED
    if is_over and isinstance(value, dict) and value.get("choice") == "retry":
        status = found.task.status
        raise InvalidInput(
            f"task {item.task_id!r} is {status}: it will not be tried again", do="settle it as done or fail"
        )


async def _write(store: Store, found: Found, value: Json, *, by: str, comment: str, once: Once | None) -> bool:
    """One try; False when something of the task has changed meanwhile."""
    task = found.task
    if found.question is None:
        assert task.pause is not None
        pause: Pause = store.unseal(task.uid, "pause", task.pause, Pause)
        handle = await attach(store, task.uid)
        return await end_pause(handle, task, pause, value, by=by, comment=comment, once=once)
    question = as_question(store, task.id, task.uid, found.question)
    line = None if question.is_left else task.line
    try:
        await answer_question(store, question, value, by=by, comment=comment, line=line, once=once)
    except Conflict:
        return False
    return True


# ── answers of other systems ─────────────────────────────────────────────────────────────────────


async def make_callback_token(store: Store, pause_id: str, *, signed: bool) -> CallbackToken:
    """Implements `Inbox.token`."""
    found = await find(store, pause_id)
    _require_open(found)
    if found.question is not None:
        topic = found.question.topic if found.item.kind == "callback" else None
    else:
        digest = found.item.waits_for.get("callback")
        topic = f"{CALLBACK_TOPIC}{digest}" if digest else None
    if topic is None:
        raise InvalidInput(f"{found.item.text!r:.200} does not wait for a callback", do="answer it, or wait")
    secret = new_secret() if signed else ""
    token = await make_token(store, found.task.uid, found.task.id, topic, secret=secret)
    return CallbackToken(token=token, secret=secret)
