"""Handle pauses that are due: end them, send reminders, check the world for them.

The rules are in perdure/_model/waits/question.py. A verb that the store refuses to a second process carries the
decision out, so any number of processes may look at the same time. Before a check, the time of the next look is stored:
that reserves the check, and if its process dies, another one runs the next.
"""

from __future__ import annotations

import random
from typing import Any

from msgspec.structs import replace

from perdure._ground.encoding import codec
from perdure._ground.secrets import envelope
from perdure._model import (
    FINISHED,
    Answer,
    Asked,
    Check,
    Later,
    Pause,
    Remind,
    Wake,
    checked_once_more,
    decide,
    from_stored,
    of_pause,
    to_stored,
)
from perdure._store import DueQuestion, EndedWait, PauseRow, RateLimitRow, Store, TaskRow
from perdure._tasks.core import attach
from perdure._tasks.lifecycle import status_moves as moves
from perdure._tasks.pauses import checks
from perdure._tasks.pauses.callbacks import apply_kept
from perdure._tasks.pauses.decisions import told_state
from perdure._tasks.pauses.questions import TASK_TOPIC
from perdure._tasks.pauses.resume_write import resume_with
from perdure._tasks.task_row import current_row
from perdure.errors import PerdureError

Json = Any
# The topic of questions about which any worker can make a check.
POLL_TOPIC = "~poll"
# A task under way handles its question itself. If that takes longer, the question makes room for others.
IN_THE_WAY_MS = 10_000
# In a question that made room: since when it has been due. The code still looks when it gets there.
WAS_DUE = "was_due"


# ── questions of durable functions ───────────────────────────────────────────────────────────────


async def take_question(store: Store, due: DueQuestion, now: int, resets: dict[str, int | None]) -> bool:
    """Handle an open question; False if another process did, or there was nothing to do."""
    question = store.unseal(due.uid, "pause", due.question)
    asked = from_stored(question.get("asked"))
    if asked is None or due.status in FINISHED:
        return await _rearm(store, due, question, asked, None)
    decision = decide(asked, now, reset_at=resets.get(asked.provider), spread=random.random())  # noqa: S311
    if isinstance(decision, Answer):
        told = {"question": question["question"], "how": decision.how}
        return await _answer(store, due, decision.value, decision.how, told)
    if isinstance(decision, Remind):
        params = {**store.event(due.uid, "reminded", {"question": question["question"]}), **_place(due)}
        return await store.verb("remind_pause", due.uid, {**params, "due_at": decision.due_at}, key=due.id) is not None
    if isinstance(decision, Wake):
        return await _wake(store, due, question, asked, now)
    if isinstance(decision, Later):
        return await _rearm(store, due, question, asked, decision.due_at)
    if not checks.may_run_anywhere(asked.check or {}):
        return await _wake(store, due, question, asked, now)
    return await _check_question(store, due, question, asked, decision)


async def _check_question(
    store: Store, due: DueQuestion, question: dict[str, Any], asked: Asked, decision: Check
) -> bool:
    assert asked.check is not None
    again = replace(asked, checks=asked.checks + 1)
    if not await _rearm(store, due, question, again, decision.due_at):
        return False
    found = await checks.make(asked.check)
    if found is None:
        return True
    told = {"question": question["question"], "how": "found"}
    return await _answer(store, due, {"value": found}, "checked", told)


async def _wake(store: Store, due: DueQuestion, question: dict[str, Any], asked: Asked, now: int) -> bool:
    """Let its code look: a paused task is resumed. One that is under way is told at its next pause."""
    row = await current_row(store, due.id, due.uid)
    if row.status != "paused":
        is_in_the_way = now - due.due_at > IN_THE_WAY_MS
        since = question.get(WAS_DUE, due.due_at)
        return is_in_the_way and await _rearm(store, due, question, asked, now + IN_THE_WAY_MS, was_due=since)
    # After the task: if the code looks between these two and pauses again, the version that was seen is over.
    if not await _is_still_due(store, due):
        return False
    task = await attach(store, due.uid)
    return await resume_with(task, row, {}, {"to look at": question["question"]})


async def _is_still_due(store: Store, due: DueQuestion) -> bool:
    """True if the question is still due: its code may have looked, and put the next look on record."""
    pauses = await store.rows(PauseRow, "read_pauses", uid=due.uid)
    return any((one.path, one.due_at, one.answer) == (due.path, due.due_at, None) for one in pauses)


def _place(due: DueQuestion) -> dict[str, Any]:
    return {"path": due.path, "seen_due_at": due.due_at}


async def _rearm(
    store: Store,
    due: DueQuestion,
    question: dict[str, Any],
    asked: Asked | None,
    due_at: int | None,
    *,
    was_due: int | None = None,
) -> bool:
    if due_at == due.due_at:
        return False
    kept = {name: value for name, value in question.items() if name != WAS_DUE}
    if asked is not None:
        kept["asked"] = to_stored(asked)
    if was_due is not None:
        kept[WAS_DUE] = was_due
    params = {**_place(due), "due_at": due_at, "question": store.seal(due.uid, "pause", kept)}
    return await store.verb("rearm_pause", due.uid, params, key=due.id) is not None


async def _answer(store: Store, due: DueQuestion, value: dict[str, Json], kind: str, told: dict[str, Json]) -> bool:
    params = {
        **store.event(due.uid, kind, told),
        "path": due.path,
        "line": None,
        "answer": store.seal(due.uid, "answer", value),
    }
    return await store.verb("answer_pause", due.uid, params, key=due.id) is not None


async def take_after_task(store: Store, wait: EndedWait) -> bool:
    """Answer a question that waits for another task with how that task ended."""
    text = store.unseal(wait.uid, "pause", wait.question)["question"]
    ended = await end_of(store, await current_row(store, wait.id, wait.other_uid))
    due = DueQuestion(wait.uid, wait.id, "", wait.path, "", None, wait.question, 0, 0)
    return await _answer(store, due, {"value": ended}, "due", {"question": text, "how": ended["status"]})


async def end_of(store: Store, other: TaskRow) -> dict[str, Json]:
    """The end of another task, in a form that needs none of its classes."""
    found: dict[str, Json] = {"id": other.id, "status": other.status}
    for kind, sealed in (("result", other.result), ("error", other.error)):
        if sealed is not None:
            found[kind] = codec.peek(envelope.unseal(sealed, kind=kind, bound_to=other.uid, ring=store.ring))
    if isinstance(found.get("error"), dict):
        for name in ("raised", "traceback"):  # the part for raising it again, and the part that only people read
            found["error"].pop(name, None)
    return found


# ── tasks without questions ──────────────────────────────────────────────────────────────────────


async def take_task(store: Store, uid: str, due_at: int, now: int, resets: dict[str, int | None]) -> bool:
    """Handle a paused task; False if another process did, or there was nothing to do."""
    row = await store.row(TaskRow, "get_task_by_uid", uid=uid)
    if row is None or row.status != "paused" or row.due_at != due_at or row.pause is None:
        return False
    pause: Pause = store.unseal(uid, "pause", row.pause, Pause)
    asked = of_pause(pause)
    if "callback" in pause.payload and await apply_kept(await attach(store, uid)):
        return True
    decision = decide(asked, now, reset_at=resets.get(asked.provider), spread=random.random())  # noqa: S311
    if isinstance(decision, Check):
        return await _check_task(store, row, pause, asked, decision)
    if isinstance(decision, Later):
        return await _rearm_task(store, row, pause, decision.due_at)
    task = await attach(store, uid)
    if isinstance(decision, Remind):
        columns: dict[str, Any] = {"pause": row.pause, "pause_reason": row.pause_reason, "due_at": decision.due_at}
        return await moves.try_move(task, "remind", data={"message": pause.message}, version=row.version, **columns)
    value = decision.value if isinstance(decision, Answer) else {}
    how = decision.how if isinstance(decision, Answer) else "due"
    return await resume_with(task, row, told_state(asked, value), {"message": pause.message, "how": how})


async def _check_task(store: Store, row: TaskRow, pause: Pause, asked: Asked, decision: Check) -> bool:
    assert asked.check is not None
    if not checks.may_run_anywhere(asked.check):
        checks.tell_not_allowed(row.id)
        return await _rearm_task(store, row, pause, decision.due_at)
    if not await _rearm_task(store, row, checked_once_more(pause), decision.due_at):
        return False
    found = await _found(store, asked)
    if found is None:
        return True
    task = await attach(store, row.uid)
    return await resume_with(task, row, told_state(asked, {"value": found}), {"message": pause.message, "how": "found"})


async def _found(store: Store, asked: Asked) -> Json:
    assert asked.check is not None
    if "task" not in asked.check:
        return await checks.make(asked.check)
    other = await store.row(TaskRow, "get_task", namespace=store.namespace, id=asked.check["task"])
    return await end_of(store, other) if other is not None and other.status in FINISHED else None


def awaited_task(store: Store, uid: str, sealed: bytes) -> str:
    """The id of the task that a pause waits for; '' when it waits for something else, or cannot be read."""
    try:
        pause: Pause = store.unseal(uid, "pause", sealed, Pause)
    except PerdureError:
        return ""  # the first one to look in time says so
    return str((of_pause(pause).check or {}).get("task", ""))


async def take_after_end(store: Store, uid: str) -> bool:
    """Resume a paused task without questions whose awaited task has ended; False if another process did, or it has not
    ended."""
    row = await store.row(TaskRow, "get_task_by_uid", uid=uid)
    if row is None or row.status != "paused" or row.pause is None:
        return False
    pause: Pause = store.unseal(uid, "pause", row.pause, Pause)
    asked = of_pause(pause)
    if "task" not in (asked.check or {}) or (found := await _found(store, asked)) is None:
        return False
    task = await attach(store, uid)
    return await resume_with(task, row, told_state(asked, {"value": found}), {"message": pause.message, "how": "found"})


async def _rearm_task(store: Store, row: TaskRow, pause: Pause, due_at: int | None) -> bool:
    if due_at == row.due_at:
        return False
    params = {
        "seen_due_at": row.due_at,
        "due_at": due_at,
        "pause": store.seal(row.uid, "pause", pause, Pause),
    }
    return await store.verb("rearm_task", row.uid, params, key=row.id) is not None


# ── all of one task ──────────────────────────────────────────────────────────────────────────────


async def look_after(store: Store, uid: str) -> int | None:
    """Handle the due pauses of one task, for a process that drives no other. Returns when to look again, if known."""
    now, resets = await store.wall_ms(), await read_resets(store)
    later: list[int] = []
    (task,) = await store.rows(TaskRow, "get_task_by_uid", uid=uid)
    if task.due_at is not None and task.status == "paused":
        later.append(task.due_at)
        is_over = task.pause is not None and awaited_task(store, uid, task.pause) and await take_after_end(store, uid)
        if task.due_at <= now and not is_over:
            await take_task(store, uid, task.due_at, now, resets)
    for one in await store.rows(PauseRow, "read_pauses", uid=uid):
        if one.answer is not None:
            continue
        if one.due_at is not None:
            later.append(one.due_at)
            if one.due_at <= now:
                what = one.path, one.reason, one.topic, one.question, one.asked_at, one.due_at
                await take_question(store, DueQuestion(uid, task.id, task.status, *what), now, resets)
        elif one.topic is not None and one.topic.startswith(TASK_TOPIC):
            await _look_at_task(store, uid, task.id, one.path, one.question, one.topic.removeprefix(TASK_TOPIC))
    return min(later, default=None)


async def _look_at_task(store: Store, uid: str, id: str, path: str, question: bytes, other: str) -> None:
    awaited = await store.row(TaskRow, "get_task", namespace=store.namespace, id=other)
    if awaited is not None and awaited.status in FINISHED:
        await take_after_task(store, EndedWait(uid, id, path, question, awaited.uid, awaited.status))


async def read_resets(store: Store) -> dict[str, int | None]:
    """Until when each provider has asked for patience."""
    limits = await store.rows(RateLimitRow, "read_rate_limits", namespace=store.namespace)
    return {limit.provider: limit.reset_at for limit in limits}
