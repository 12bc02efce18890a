"""What the tools do with a task: its state, its questions, its checkpoints. Shells are in terminal.py.

The lease is held for the length of one call: a client that vanishes leaves nothing behind that another would wait for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from perdure._app import Perdure
from perdure._ground.bridge import Nap
from perdure._model import Event, Pause, TaskFilter, TaskRecord
from perdure._tasks import Task, in_one_call
from perdure.errors import Conflict, InvalidInput, InvalidTransition, NotFound
from perdure.mcp.answers import (
    CheckpointLine,
    CheckpointLines,
    Reply,
    Saved,
    TaskLine,
    TaskLines,
    Where,
    short,
)
from perdure.mcp.terminal import Terminals, shell_infos
from perdure.memory import owner_prefix

_LOOK_SECONDS = 0.25
_MOST_LISTED = 50
# Of a state, as JSON. A model reads all of it at each start.
_MOST_STATE = 100_000
# The events that end a pause.
_ENDS = frozenset({"resumed", "completed", "failed", "cancelled", "moved away", "rolled back"})


class Agent:
    """One task, as the client of this call works on it."""

    def __init__(self, app: Perdure, task: str) -> None:
        self.app, self.id = app, task

    async def task(self) -> Task:
        return await self.app.tasks.open(self.id, state={})

    async def record(self) -> TaskRecord | None:
        return await self.app.tasks.get(self.id)

    async def terminals(self) -> Terminals:
        """Where its shells are; the task is made if it is not there."""
        await self.task()
        return Terminals(await self.app.runtime(self.id), self.id, self.app.storage)

    # ── where was I ─────────────────────────────────────────────────────────────────────────────

    async def where(self) -> Where:
        record = await self.record()
        if record is None:
            return Where(task=self.id, status="new", note="nothing is known of this task yet; save_state begins it")
        shells = await shell_infos(await self.app.runtime(self.id))
        asked = await self.app.inbox.page(kinds=["effect"], task=self.id, limit=_MOST_LISTED)
        unsettled = [f"{one.effect.call}: {one.effect.why}" for one in asked if one.effect is not None]
        notes = [f"damaged and left out: {', '.join(record.damaged)}"] if record.damaged else []
        size = _size(record.state)
        if size > _MOST_STATE:  # not written by save_state
            notes.append(f"the state is left out: it has {size:,} bytes; `perdure show {self.id}` shows it")
        return Where(
            task=self.id,
            status=record.status,
            state=record.state if size <= _MOST_STATE else None,
            saved_at=record.latest.timestamp if record.latest is not None else None,
            question=_question(record.pause),
            shells=shells,
            unsettled=[short(one, 300) for one in unsettled],
            note="; ".join(notes),
        )

    async def list(self, status: str, limit: int) -> TaskLines:
        chosen: Any = [status] if status else []
        found = await self.app.tasks.page(TaskFilter(status=chosen), limit=limit)
        return TaskLines(
            tasks=[
                TaskLine(id=one.id, status=one.status, name=short(one.name, 200), updated_at=one.updated_at)
                for one in found
            ]
        )

    # ── the state ───────────────────────────────────────────────────────────────────────────────

    async def save(self, state: Mapping[str, Any], label: str) -> Saved:
        _check_size(state)
        task = await self.task()
        try:
            made = await in_one_call(task, lambda held: held.checkpoint(dict(state), label=label))
        except InvalidTransition as no:
            raise self._unsaved(no) from None
        return Saved(checkpoint=str(made.seq), at=made.timestamp)

    def _unsaved(self, no: InvalidTransition) -> InvalidTransition:
        """The refusal, with what a model can do about it: ending the pause is for a person or the clock."""
        if no.status == "paused":
            do = "get_answer says when it goes on; until then give `task` another name for notes"
        else:
            do = "give `task` another name"
        return InvalidTransition(self.id, no.status, "keep new notes", do=do)

    async def checkpoints(self, limit: int) -> CheckpointLines:
        task, record = await self._known()
        current = record.latest.seq if record.latest is not None else -1
        found = [one async for one in task.checkpoints()]
        lines = [
            CheckpointLine(
                checkpoint=str(one.seq), at=one.timestamp, label=short(one.label, 200), current=one.seq == current
            )
            for one in found
        ]
        return CheckpointLines(checkpoints=lines[-limit:][::-1])

    async def restore(self, checkpoint: str) -> Where:
        task, _ = await self._known()
        await task.rollback(checkpoint, undo=False)
        return await self.where()

    async def _known(self) -> tuple[Task, TaskRecord]:
        record = await self.record()
        if record is None:
            raise NotFound("task", self.id, "the store", do="save_state begins it")
        return await self.app.tasks.handle(self.id), record

    # ── questions and waits ─────────────────────────────────────────────────────────────────────

    async def ask(self, question: str, state: Mapping[str, Any] | None, wait_seconds: float) -> Reply:
        task = await self.task()
        record = await task.record()
        if record.is_paused:
            if record.pause is not None and record.pause.message == question:  # asked again after a lost answer
                return await self.answer(wait_seconds)
            raise Conflict(
                f"the task already waits for something: {_question(record.pause)}",
                do="get_answer tells what became of it; ask for another thing under another task",
            )
        if state is not None:
            _check_size(state)
        await task.pause(question, reason="human_approval", checkpoint=None if state is None else dict(state))
        return await self.answer(wait_seconds)

    async def wait_until(self, until: str, seconds: float, why: str) -> Reply:
        due = _moment(until) if until else datetime.now(UTC) + timedelta(seconds=seconds)
        task = await self.task()
        await task.pause(why or "waiting", reason="scheduled_wait", until=due)
        return await self.answer(0)

    async def answer(self, wait_seconds: float) -> Reply:
        """What became of the last question or wait; after so many seconds at most."""
        end = time.monotonic() + wait_seconds
        while (reply := await self._look()).status == "waiting" and time.monotonic() < end:
            await Nap(min(_LOOK_SECONDS, max(0.0, end - time.monotonic())))
        return reply

    async def _look(self) -> Reply:
        task, record = await self._known()
        pause = record.pause
        if record.is_paused and pause is not None:
            is_over = pause.due_at is not None and pause.due_at <= datetime.now(UTC)
            if not is_over:
                note = f"a person decides: `perdure approve {self.id}` or `perdure reject {self.id}`, or the dashboard"
                asks = pause.reason in ("human_approval", "human_input")
                return Reply(status="waiting", due_at=pause.due_at, note=note if asks else _question(pause))
            await task.resume()
            return Reply(status="over", note=_question(pause))
        return _said(await self._last_pause())

    async def _last_pause(self) -> Sequence[Event]:
        """The events since the task was paused for the last time. The place of that one is noted, so that a later call
        reads no more than what came behind it."""
        place = f"{owner_prefix('execution', self.id)}mcp/paused"
        noted = await self.app.storage.get(place)
        before = noted if type(noted) is int and noted > 0 else 0
        events = await self.app.tasks.events(self.id, after=before)
        at = max((at for at, event in enumerate(events) if event.kind == "paused"), default=None)
        if at is None:
            return ()
        if events[at].number - 1 != before:
            await self.app.storage.put(place, events[at].number - 1)
        return events[at:]


def _size(state: Any) -> int:
    return len(msgspec.json.encode(state, enc_hook=str))


def _check_size(state: Mapping[str, Any]) -> None:
    if (size := _size(state)) > _MOST_STATE:
        raise InvalidInput(
            f"the state has {size:,} bytes as JSON; {_MOST_STATE:,} are allowed",
            do="keep what is large in a file, and its path here",
        )


def _said(events: Sequence[Event]) -> Reply:
    """How the pause ended that these events begin with."""
    if not events:
        return Reply(status="nothing_asked")
    asked = short(_data(events[0]).get("message", ""))
    end = next((event for event in events[1:] if event.kind in _ENDS), None)
    told = {} if end is None or end.kind != "resumed" else _data(end)
    by, comment = str(told.get("by", "")), short(told.get("comment", ""))
    if told.get("decision") in ("approve", "reject"):
        decision = "approved" if told["decision"] == "approve" else "rejected"
        return Reply(status=decision, by=by, comment=comment, value=told.get("edited"), note=asked)  # type: ignore[arg-type]
    if "message" in told:
        return Reply(status="answered", by=by, comment=comment, value=told.get("value"), note=asked)
    if _data(events[0]).get("reason") in ("human_approval", "human_input"):
        asked = f"the wait ended without an answer: nobody decided {asked!r}"
    return Reply(status="over", note=asked)


def _data(event: Event) -> Mapping[str, Any]:
    return event.data if isinstance(event.data, Mapping) else {}


def _question(pause: Pause | None) -> str:
    return "" if pause is None else short(f"{pause.reason}: {pause.message}")


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text[:80]!r} is not a moment", do="write it as 2026-11-18T16:05:00+00:00") from None
    if found.tzinfo is None:
        raise InvalidInput(f"{text[:80]!r} has no time zone", do="write it as 2026-11-18T16:05:00+00:00")
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{text[:80]!r} is not in the calendar of UTC", do="choose another moment") from None
