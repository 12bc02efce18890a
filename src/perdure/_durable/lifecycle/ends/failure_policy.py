"""Decide what follows when a durable function raises: its task fails, asks a person, or is tried again later.

`Config(on_failure="retry")` tries it again, up to `max_retries` times. The number of tries is in the record of the
task's attempts, and the wait for the next try is a pause, so both outlive every process. In every case the journal
first notes which calls the next attempt must repeat, because a person can also resume a task that failed for good.
"""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

from msgspec import Struct

from perdure._durable.attempt import Attempt
from perdure._durable.journal import FAILED, errors_in, note_of, read_entries, to_forget
from perdure._ground import crash_points as crash
from perdure._ground.clock import moment
from perdure._ground.exception_text import in_one_line, name_and_message, printable
from perdure._ground.secrets.known_secrets import redact
from perdure._ground.traceback_text import trace_of
from perdure._model import Config, Pause, first_look, make_pause, of_pause
from perdure._store import AttemptRow, TaskRow
from perdure._tasks import Hold, Task, move, release_lease
from perdure.errors import InvalidTransition

log = logging.getLogger("perdure.durable")

FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=1), timedelta(minutes=5)


class Choice(Struct, frozen=True):
    what: str
    trace: str = ""  # the traceback
    tries: int = 1
    most: int = 1
    wait: timedelta | None = None  # before the next try
    pauses: bool = False  # ask a person


async def choose(task: Task, attempt: Attempt, error: BaseException) -> Choice:
    """Choose the action of `Config.on_failure` for this task. When this returns, the calls that the next attempt must
    repeat are recorded on disk."""
    store, what, trace = attempt.store, printable(redact(in_one_line(name_and_message(error))))[:500], trace_of(error)
    can_be_tried = await _note(attempt, error)
    sealed = TaskRow(*(await store.query("get_task_by_uid", uid=attempt.uid))[0]).config
    config: Config = Config() if sealed is None else store.unseal(attempt.uid, "config", sealed, Config)
    if config.on_failure == "pause":
        return Choice(what, trace, pauses=True)
    if config.on_failure != "retry" or not can_be_tried:
        return Choice(what, trace)
    attempts = await store.rows(AttemptRow, "read_attempts", uid=attempt.uid)
    tries = 1 + sum(row.ended.startswith(FAILED) for row in attempts)
    return Choice(what, trace, tries, config.max_retries + 1, after_tries(tries, config.max_retries))


def after_tries(tries: int, max_retries: int) -> timedelta | None:
    """How long to wait before the next try; None if no try is left."""
    return None if tries > max_retries else min(FIRST_WAIT * 2 ** min(tries - 1, 20), LONGEST_WAIT)


async def _note(attempt: Attempt, error: BaseException) -> bool:
    await attempt.flush()
    positions = to_forget(await read_entries(attempt.store, attempt.uid, attempt.line), errors_in(error))
    if positions:
        attempt.record(note_of(positions, attempt.epoch, attempt.store.clock.now_ms()))
        await attempt.flush()
    crash.place("failing.noted")
    return positions is not None


async def try_later(task: Task, hold: Hold, attempt: Attempt, choice: Choice) -> None:
    """Pause the task until its next try."""
    assert choice.wait is not None
    now = await attempt.store.wall_ms()
    until = moment(now + choice.wait // timedelta(milliseconds=1))
    message = f"try {choice.tries} of {choice.most} failed: {choice.what}; trying again"
    log.warning("task %s, %s in %.0f s\n%s", task.id, message, choice.wait.total_seconds(), choice.trace)
    payload = {"until": until, "traceback": choice.trace}
    payload |= {"tries": choice.tries, "most": choice.most, "failed": choice.what}
    made = make_pause("scheduled_wait", message, payload, now, json.loads(attempt.store.presence.author()))
    await _pause(task, hold, attempt, made, choice)
    crash.place("failing.waiting")


async def ask(task: Task, hold: Hold, attempt: Attempt, choice: Choice) -> None:
    """Pause the task until a person resumes it; then it is tried again."""
    now = await attempt.store.wall_ms()
    author = json.loads(attempt.store.presence.author())
    made = make_pause(
        "human_input", f"failed: {choice.what}", {"error": choice.what, "traceback": choice.trace}, now, author
    )
    await _pause(task, hold, attempt, made, choice)


async def _pause(task: Task, hold: Hold, attempt: Attempt, made: Pause, choice: Choice) -> None:
    columns: dict[str, Any] = {
        "pause": attempt.store.seal(task.uid, "pause", made, Pause),
        "pause_reason": made.reason,
        "due_at": first_look(of_pause(made), int(made.since.timestamp() * 1000)),
    }
    data = {"reason": made.reason, "message": made.message, "traceback": choice.trace}
    try:
        await move(task, "pause", hold=hold, ended=f"error: {choice.what}", data=data, **columns)
    except InvalidTransition:
        if task.status != "paused":
            raise
        # A caller paused it meanwhile: that pause counts.
        await release_lease(attempt.store, hold, f"error: {choice.what}")
