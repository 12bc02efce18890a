"""The open questions of tasks, and answering them: the first answer stands, and a paused task goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from perdure._ground.clock import moment
from perdure._store import Store
from perdure.errors import Conflict, InvalidInput, NotFound

# Whether an effect happened: the one kind of question whose answer is a choice.
EFFECT = "~effect"
CHOICES = ("done", "retry", "fail")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something a durable function waits for, or would like to know."""

    task_id: str
    uid: str
    path: str
    reason: str
    topic: str | None
    text: str
    details: dict[str, Any]
    asked_at: datetime
    due_at: datetime | None

    @property
    def is_about_effect(self) -> bool:
        return self.topic == EFFECT


async def all_questions(store: Store, *, limit: int) -> list[Question]:
    """Every open question of the namespace, the oldest first."""
    rows = await store.query("list_questions", namespace=store.namespace, limit=limit)
    return [_question(store, row[1], row[0], row[2:8]) for row in rows]


async def questions_of(store: Store, task_id: str, uid: str) -> list[Question]:
    rows = await store.query("read_pauses", uid=uid)
    return [_question(store, task_id, uid, row[:6]) for row in rows if row[6] is None]


def _question(store: Store, task_id: str, uid: str, row: Sequence[Any]) -> Question:
    path, reason, topic, sealed, asked_at, due_at = row
    asked = store.unseal(uid, "pause", sealed)
    return Question(
        task_id=task_id,
        uid=uid,
        path=path,
        reason=reason,
        topic=topic,
        text=str(asked.get("question", "")),
        details=asked.get("details") or {},
        asked_at=moment(asked_at),
        due_at=moment(due_at) if due_at is not None else None,
    )


async def answer_question(store: Store, question: Question, value: Any, *, by: str) -> None:
    """Answer it, once; durable when this returns.

    Raises:
        InvalidInput: the answer does not fit the question; nothing was written.
        Conflict: it was answered before, or the task has ended.
    """
    answer = _choice(question, value) if question.is_about_effect else value
    told = {"question": question.text, "by": by}
    if question.is_about_effect:
        answer["by"], told["choice"] = by, answer["choice"]
    params = {
        **store.event(question.uid, "answered", told),
        "path": question.path,
        "answer": store.seal(question.uid, "answer", answer),
    }
    if await store.verb("answer_pause", question.uid, params, key=question.task_id) is None:
        raise Conflict(
            f"the question {question.text!r} of task {question.task_id!r} is not open any more",
            kept="the first answer",
            do=f"`perdure show {question.task_id}` tells where the task stands",
        )


def _choice(question: Question, value: Any) -> dict[str, Any]:
    given = dict(value) if isinstance(value, dict) and "choice" in value else {"choice": value}
    choice = given["choice"]
    may = CHOICES if question.details.get("waits", True) else ("done", "fail")
    if choice not in may:
        more = "" if choice not in CHOICES else "; the code has gone on without it, so nobody would try again"
        raise InvalidInput(f"{choice!r} is no answer to {question.text!r}{more}", do=f"answer {', '.join(may)}")
    if choice != "done" and given.get("value") is not None:
        raise InvalidInput(f"{choice!r} takes no value", do="give a value with done")
    return {"choice": choice, "value": given.get("value")}


def choose(questions: Sequence[Question], task_id: str, store: Store, *, key: str | None = None) -> Question:
    """The one question that is meant.

    Raises:
        NotFound: there is none.
        InvalidInput: there are several, and nothing says which.
    """
    found = [one for one in questions if key is None or key in (one.details.get("key"), one.path)]
    if not found:
        raise NotFound(
            "open question", key or task_id, store.place, do=f"`perdure show {task_id}` tells where it stands"
        )
    if len(found) > 1:
        waiting = [one for one in found if one.details.get("waits", True)]
        if len(waiting) == 1:
            return waiting[0]
        listed = "; ".join(f"{one.text} [{one.details.get('key', one.path)}]" for one in found)
        raise InvalidInput(f"task {task_id!r} has {len(found)} open questions: {listed}", do="say which by its key")
    return found[0]
