"""The layer that tells a model where it is after an interruption.

Reads records of other parts and stores nothing itself: uncertain effects, the last restore report, answers that were
cut off, pauses and questions, thoughts that were set aside. The most important ones are first, so that a small budget
cuts the rest.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from perdure._durable import Effects, account_of, partial_streams
from perdure._model import TaskRecord
from perdure._runtime import last_report, redact
from perdure._tasks import open_frames, questions_of, store_of
from perdure.memory.layer import Block, Budget, LayerContext, Scope, Slot
from perdure.memory.prompt import cut
from perdure.memory.task_state_events import iso

MOST_TOKENS = 500
_MOST_OF_A_KIND = 10
_LONGEST = 300
_LAST_WORDS = 80


class ContinuityLayer:
    """A layer: the facts a model needs after an interruption, in at most `budget` tokens."""

    id = "continuity"
    scope: Scope = "execution"

    def __init__(self, *, budget: int = MOST_TOKENS) -> None:
        self.slot: int = Slot.CONTINUITY
        self.budget: Budget = Budget(min(60, budget), budget)
        self._context: LayerContext | None = None

    async def init(self, context: LayerContext) -> None:
        self._context = context

    async def recall(self, budget: int) -> Block | None:
        assert self._context is not None
        lines = await told(self._context)
        if not lines:
            return None
        text = "<continuity>\n" + "\n".join(lines) + "\n</continuity>"
        short = cut(text, budget, self._context.count)
        return None if short is None else Block("developer", short)


async def told(context: LayerContext) -> list[str]:
    """One line for each fact, the most important first; none when the task was never interrupted."""
    tasks, task_id = context.tasks, context.task_id
    record = await tasks.get(task_id)
    if record is None:
        return []
    uncertain = [effect for effect in await Effects(tasks).of(task_id) if effect.state == "uncertain"]
    lines = [
        _line(f"UNCERTAIN: whether {one.call} happened is not known (key {one.key}). Do not do it again; look first.")
        for one in uncertain
    ]
    lines += await _of_report(context)
    lines += await _of_streams(context)
    lines += await _of_pauses(context, record)
    lines += [_line(_of_frame(frame)) for frame in await open_frames(store_of(tasks), task_id)]
    return lines + await _of_attempts(context, record)


async def _of_report(context: LayerContext) -> list[str]:
    report = await last_report(await context.tasks.handle(context.task_id))
    text = "" if report is None else report.for_model()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("<restore_", "</restore_"))]
    return [_line(line) for line in lines[: 2 * _MOST_OF_A_KIND]]


async def _of_streams(context: LayerContext) -> list[str]:
    """Partial answers: stored, and never presented as complete."""
    parts = (await partial_streams(context.tasks, context.task_id))[-_MOST_OF_A_KIND:]
    return [
        _line(
            f"[{part.marker}] {name} is not whole: {part.offset:,} characters are kept. Go on exactly where it ends; "
            f"repeat nothing. It ends: …{part.text[-_LAST_WORDS:]}"
        )
        for name, part in parts
    ]


async def _of_pauses(context: LayerContext, record: TaskRecord) -> list[str]:
    questions = await questions_of(store_of(context.tasks), record.id, record.uid, has_ended=record.is_finished)
    lines = [_line(f"WAITING for {one.reason}: {one.text}") for one in questions if not one.is_about_effect]
    if record.pause is not None and record.is_paused and not lines:
        lines = [_line(f"PAUSED for {record.pause.reason}: {record.pause.message}")]
    return lines[:_MOST_OF_A_KIND]


def _of_frame(frame: Any) -> str:
    interrupted = f" (set aside because: {frame.because})" if frame.because else ""
    state = "Now: " if frame.resumed_at is not None else "Set aside: "
    return f"{state}{frame.announcement}. Goal: {frame.goal}{interrupted}"


async def _of_attempts(context: LayerContext, record: TaskRecord) -> list[str]:
    ended = [attempt for attempt in record.attempts if attempt.ended_at is not None]
    broken = [attempt for attempt in ended if attempt.ended not in ("released", "completed", "paused")]
    if not broken:
        return []
    last = broken[-1]
    when = f" at {iso(last.ended_at)}" if isinstance(last.ended_at, datetime) else ""
    lines = [_line(f"This is attempt {len(record.attempts)}. An earlier one ended{when}: {last.ended}.")]
    account = await account_of(context.tasks, record.id)
    saved = getattr(account, "saved", None)
    if saved is not None and not saved.is_nothing:
        lines.append(_line(f"Kept from before, {saved}."))
    return lines


def _line(text: str) -> str:
    """The text on one line, so that it cannot close a tag or begin another line."""
    flat = redact(" ".join(text.replace("<", "‹").split()))
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…"
