"""Answers from other systems, by a token: made for one question, good once, stored only as its hash.

    token = await task.callback_token()                       # give it to the other system
    await task.pause("CI is running", reason="external_dependency", callback=token)
    await app.tasks.deliver(token, {"state": "success"})      # what the other system does

A token is stored before it is given to anyone, so an answer can arrive before the task pauses: it is kept, and the
pause finds it. An answer that arrives a second time changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perdure._model import Asked, hash_of_token, new_token, task_of_token
from perdure._store import SignalRow, Store, TaskRow
from perdure._tasks import records
from perdure._tasks.core import TaskCore, attach
from perdure._tasks.pauses import questions
from perdure._tasks.pauses.resume_write import resume_with
from perdure._tasks.task_row import current_row
from perdure.errors import InvalidInput, NotAllowed, NotFound

Json = Any
# Signals of ours: a token that was given out, and what came back by it.
_TOKEN = "~token "
TOPIC = "~callback "


def topic_of(line: int, path: str) -> str:
    """The topic that a question of a durable function listens to."""
    return f"{TOPIC}{line} {path}"


async def make_token(store: Store, uid: str, task_id: str, topic: str | None = None, *, secret: str = "") -> str:
    """A new token; it is on record when this returns. `topic` is the question's, of a durable function. With a
    `secret`, only an answer that is signed with it counts."""
    token = new_token(uid)
    digest = hash_of_token(token)
    kept = {"topic": topic or f"{TOPIC}{digest}", **({"secret": secret} if secret else {})}
    params = {
        **store.event(uid, "token made", {}),
        "name": f"{_TOKEN}{digest}",
        "once": None,
        "value": store.seal(uid, "answer", kept),
    }
    if await store.verb("send_signal", uid, params, key=task_id) is None:
        row = await current_row(store, task_id, uid)
        raise InvalidInput(f"task {task_id!r} is {row.status}: nothing will call it back")
    return token


async def token_for(task: TaskCore) -> str:
    """A token for what the task waits for, or will."""
    store = task._store
    waiting = [
        one.topic
        for one in await questions.questions_of(store, task.id, task.uid)
        if one.asked is not None and one.asked.kind == "callback"
    ]
    return await make_token(store, task.uid, task.id, waiting[0] if waiting else None)


async def deliver(
    store: Store, token: str, value: Json, *, by: str = "", is_signed: Callable[[str], bool] | None = None
) -> bool:
    """Bring an answer; True when it counts, False when one has come before or the task has ended.

    `is_signed` says whether the answer was signed with a secret; it is asked for tokens that were made with one.

    Raises:
        NotFound: the token is unknown; the error says nothing else.
        NotAllowed: the token requires a signature, and the answer has no valid one.
        InvalidInput: the value does not fit the question; the token stays valid.
    """
    uid, digest = task_of_token(token), hash_of_token(token)
    row = await store.row(TaskRow, "get_task_by_uid", uid=uid) if uid is not None else None
    if row is None or row.namespace != store.namespace:
        raise _unknown(store)
    signals = await store.rows(SignalRow, "read_signals", uid=row.uid)
    made = [store.unseal(row.uid, "answer", one.value) for one in signals if one.name == f"{_TOKEN}{digest}"]
    if not made:
        raise _unknown(store)
    topic, secret = made[0]["topic"], made[0].get("secret", "")
    if secret and not (is_signed is not None and is_signed(secret)):
        raise NotAllowed("this callback wants a signature, and the answer has none that is good")
    if any(one.name == topic for one in signals):
        return False
    await _check(store, row, topic, value)
    params = {
        **store.event(row.uid, "called back", {"by": by} if by else {}),
        "name": topic,
        "once": topic,
        "value": store.seal(row.uid, "answer", {"value": value, "by": by}),
    }
    if await store.verb("send_signal", row.uid, params, key=row.id) is None:
        return False
    await apply_kept(await attach(store, row.uid))
    return True


def _unknown(store: Store) -> NotFound:
    return NotFound("callback with this", "token", store.place, do="use the token as it was announced")


async def _check(store: Store, row: TaskRow, topic: str, value: Json) -> None:
    """If the question is open already, its form is known; else the code looks when it asks."""
    asked: Asked | None = None
    text = "the callback"
    for question in await questions.questions_of(store, row.id, row.uid):
        if question.topic == topic:
            asked, text = question.asked, question.text
    if asked is not None:
        questions.fitting(asked, value, text)


async def apply_kept(task: TaskCore) -> bool:
    """Resume a task without questions whose callback has already been answered. Returns True if it did."""
    store = task._store
    row = await current_row(store, task.id, task.uid)
    pause = (await records.load(store, row))[0].pause
    if pause is None or row.status != "paused" or "callback" not in pause.payload:
        return False
    topic = f"{TOPIC}{pause.payload['callback']}"
    kept = [one for one in await store.rows(SignalRow, "read_signals", uid=row.uid) if one.name == topic]
    if not kept:
        return False
    answer = store.unseal(row.uid, "answer", kept[0].value)
    return await resume_with(task, row, {"external": answer}, {"called back": pause.message})
