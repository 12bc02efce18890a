"""Send a durable function something from outside: a signal, or new instructions."""

from __future__ import annotations

from perdure._model import FINISHED
from perdure._tasks.core import TaskCore
from perdure._tasks.pauses import questions
from perdure._tasks.task_row import current_row
from perdure.errors import InvalidTransition

# The signal that carries new instructions; the newest counts.
INSTRUCTION = "~instruction"


async def send(task: TaskCore, name: str, value: object, once: str | None = None) -> None:
    """Keep a signal for the task, or give it to the call that waits for it.

    Raises:
        InvalidInput: it does not fit the type that is waited for; nothing was sent.
        InvalidTransition: the task has ended.
    """
    store = task._store
    if not name.startswith("~"):
        await _refuse_misfit(task, name, value)
    params = {
        **task._event("signalled", {"name": name}),
        "name": name,
        "value": store.seal(task.uid, "answer", value),
        "once": once,
    }
    if await store.verb("send_signal", task.uid, params, key=task.id) is None:
        row = await current_row(store, task.id, task.uid)
        if once is not None and row.status not in FINISHED:
            return
        raise InvalidTransition(task.id, row.status, "be signalled", do="only a task that goes on takes signals")


async def _refuse_misfit(task: TaskCore, name: str, value: object) -> None:
    """Check the value against the type that the oldest waiting call takes: that call would get the signal."""
    waiting = [one for one in await questions.questions_of(task._store, task.id, task.uid) if one.topic == name]
    if waiting:
        questions.refuse_misfit(min(waiting, key=lambda one: (one.asked_at, one.path)), value)
