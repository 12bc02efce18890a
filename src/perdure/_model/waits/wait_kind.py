"""What a paused task waits for, in one word: for filters, counts and situations. Pure.

A reason says what the code asked for; a kind says what ends the pause. `human_input`, for example, is also the reason
of a task that an operator has stopped, and of one whose code no longer fits its journal.
"""

from __future__ import annotations

from perdure._model.waits.inbox import INBOX_KINDS, PauseKind, pause_kind
from perdure._model.waits.pause import Pause
from perdure._model.waits.question import of_pause

WaitKind = PauseKind
# A person ends these.
FOR_YOU: frozenset[str] = frozenset(INBOX_KINDS)
# Something else ends these, and a worker notices.
BY_ITSELF: frozenset[str] = frozenset({"callback", "poll", "timer", "rate_limit", "task", "signal", "yield"})
_QUESTION_FIELDS = ("question", "schema", "default")
_OWN_MARKS = ("error", "crash_loop", "credential")  # a pause that perdure itself made, and asks about


def kind_of_pause(pause: Pause, *, is_foreign: bool, is_looked_at: bool) -> WaitKind:
    """The kind of a task's own pause. Each question of a durable function has its own.

    `is_foreign`: the pause was made by another process than the one that worked on the task, or its task is a durable
    function's, whose code asks by questions. `is_looked_at`: a worker ends it, or looks at it, by itself.
    """
    if pause.details.get("diverged"):
        return "diverged"
    asked = of_pause(pause)
    if asked.kind == "yield":
        return "yield" if is_looked_at else "outside"
    if asked.kind == "input" and is_foreign and _asks_nothing(pause):
        return "outside"
    if asked.kind == "poll" and "task" in pause.payload:
        return "task"
    return pause_kind(asked, None, pause.details)


def _asks_nothing(pause: Pause) -> bool:
    said = {**pause.payload, **pause.details}
    return pause.expires_at is None and not any(name in said for name in (*_QUESTION_FIELDS, *_OWN_MARKS))
