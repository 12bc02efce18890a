"""The open questions of tasks, and answering them: the first answer stands, and a paused task continues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from shlex import quote
from typing import Any

import msgspec
from msgspec import Struct

from perdure._ground.clock import moment
from perdure._ground.encoding import codec
from perdure._model import Asked, from_stored, misfit, misfits
from perdure._store import ListedQuestion, PauseRow, Store, StoredQuestion
from perdure._tasks.once import Once
from perdure.errors import Conflict, InvalidInput, NotFound

# Whether an effect happened: the one kind of question whose answer is a choice.
EFFECT = "~effect"
# Before the id of a task that a question waits for.
TASK_TOPIC = "~task "
_LEFT = "~"  # with which the paths of such a line's questions begin
CHOICES = ("done", "retry", "fail")


class Question(Struct, frozen=True, kw_only=True):
    """Something a durable function waits for, or would like to know."""

    task_id: str
    uid: str
    path: str
    reason: str
    topic: str | None
    text: str
    details: dict[str, Any]
    asked_at: datetime
    due_at: datetime | None  # when it is looked at next without an answer
    stack: Sequence[str] = ()  # the functions that it was asked in, outermost first
    asked: Asked | None = None  # the allowed answers; None for signals and effects
    signal: dict[str, Any] | None = None  # the type of the signal it waits for, and its JSON Schema

    @property
    def waits_for(self) -> str:
        """In one line: what, why, since when, and when it expires or is looked at next."""
        if self.is_about_effect:
            why = str(self.details.get("why") or "").partition("\n")[0]
            return f"{self.text} ({why})" if why not in self.text else self.text
        if self.asked is None:
            return self.text
        if self.asked.expires_at is not None:
            until = f", expires {_shown(moment(self.asked.expires_at))}"
        else:
            until = f", looked at next {_shown(self.due_at)}" if self.due_at is not None else ""
        return f"{self.text} ({self.reason}, since {_shown(self.asked_at)}{until})"

    @property
    def way_on(self) -> str:
        """The answer that ends the pause."""
        if self.is_about_effect:
            return f"an answer: perdure answer {quote(self.task_id)} {'|'.join(self.choices)}"
        if self.is_about_signal:
            assert self.topic is not None
            form = f" of type {self.signal['type']}" if self.signal is not None else ""
            return f"a signal{form}: perdure signal {quote(self.task_id)} {quote(self.topic)} VALUE"
        if self.asked is None or self.asked.kind == "input":
            return f"an answer: perdure answer {quote(self.task_id)}"
        if self.asked.kind == "approval":
            return f"a decision: perdure approve or perdure reject {quote(self.task_id)}"
        return "it goes on by itself, when what it waits for is there"

    @property
    def choices(self) -> Sequence[str]:
        """The allowed answers about an effect: once the code has moved past it, "try again" is not among them."""
        return CHOICES if self.details.get("waits", True) else ("done", "fail")

    @property
    def is_left(self) -> bool:
        """True if the question was asked on a line the task has left. Then it is about an effect, and no code waits for
        it."""
        return self.path.startswith(_LEFT)

    @property
    def is_about_signal(self) -> bool:
        return self.asked is None and self.topic is not None and not self.topic.startswith("~")

    @property
    def is_about_effect(self) -> bool:
        return self.topic == EFFECT


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


async def all_questions(store: Store, *, limit: int) -> list[Question]:
    """Every open question of the namespace, the oldest first."""
    rows = await store.rows(ListedQuestion, "list_questions", namespace=store.namespace, limit=limit)
    return [as_question(store, row.id, row.uid, row) for row in rows]


async def questions_of(store: Store, task_id: str, uid: str, *, has_ended: bool = False) -> list[Question]:
    """The open questions of a task. If the task has ended, those about effects it left uncertain."""
    rows = await store.rows(PauseRow, "read_pauses", uid=uid)
    found = [as_question(store, task_id, uid, row) for row in rows if row.answer is None]
    return [one for one in found if one.is_about_effect or not has_ended]


def as_question(store: Store, task_id: str, uid: str, row: StoredQuestion) -> Question:
    path, due_at = row.path, row.due_at
    asked = store.unseal(uid, "pause", row.question)
    details = asked.get("details") or {}
    if path.startswith(_LEFT):
        details = {**details, "waits": False}
    return Question(
        task_id=task_id,
        uid=uid,
        path=path,
        reason=row.reason,
        topic=row.topic,
        text=str(asked.get("question", "")),
        details=details,
        asked_at=moment(row.asked_at),
        due_at=moment(due_at) if due_at is not None else None,
        stack=tuple(str(one) for one in asked.get("stack") or ()),
        asked=from_stored(asked.get("asked")),
        signal=asked.get("signal"),
    )


async def answer_question(
    store: Store,
    question: Question,
    value: object,
    *,
    by: str,
    comment: str = "",
    line: int | None = None,
    once: Once | None = None,
) -> None:
    """Answer it, once; durable when this returns. With `line`, only if the task is still on that line of its journal.

    Raises:
        InvalidInput: the answer does not fit the question; nothing was written.
        Conflict: it was answered before, or the task has ended.
    """
    answer, kind = value, "answered"
    told = {"question": question.text, "by": by}
    if question.is_about_effect:
        answer = {**_choice(question, value), "by": by}
        told["choice"] = answer["choice"]
    elif question.asked is not None:
        answer = {**fitting(question.asked, value, question.text), "by": by}
        kind = _EVENTS.get(str(answer.get("decision")), kind)
        told |= {"comment": answer["comment"]} if answer.get("comment") else {}
    elif question.is_about_signal:
        refuse_misfit(question, value)
    if comment and isinstance(answer, dict):
        answer = {**answer, "comment": comment}
        told["comment"] = comment
    params = {
        **store.event(question.uid, kind, told, once=once.mark if once is not None else ""),
        "path": question.path,
        "line": line,
        "answer": store.seal(question.uid, "answer", answer),
    }
    if await store.verb("answer_pause", question.uid, params, key=question.task_id) is None:
        raise Conflict(
            f"the question {question.text!r} of task {question.task_id!r} is not open any more",
            kept="the first answer",
            do=f"`perdure show {question.task_id}` tells where the task stands",
        )


_EVENTS = {"approve": "approved", "reject": "rejected"}


def fitting(asked: Asked, value: object, text: str) -> dict[str, Any]:
    """The answer as it is kept.

    Raises:
        InvalidInput: it does not fit the question; nothing was written, and the task stays paused.
    """
    if asked.kind == "approval":
        return _decision(asked, value, text)
    if asked.kind in ("wait", "rate_limit", "yield", "task") and value is not None:
        raise InvalidInput(f"{text!r} takes no answer: it ends by itself", do="answer null to end it now")
    wrong = misfits(json_form(value), asked.schema) if asked.schema is not None else []
    if wrong:
        raise InvalidInput(
            f"the answer to {text!r} does not fit: {wrong[0]}",
            kept="nothing was written; the task stays paused",
            do=f"give a value of this form: {json.dumps(asked.schema)[:300]}",
            errors=[{"path": list(one.path), "message": one.message} for one in wrong],
        )
    return {"value": value}


def refuse_misfit(question: Question, value: object) -> None:
    """
    Raises:
        InvalidInput: the value is not one of the type that a call waits for by this signal.
    """
    form = question.signal or {}
    schema = form.get("schema")
    wrong = misfit(json_form(value), schema) if schema is not None else None
    if wrong is not None:
        raise InvalidInput(
            f"task {question.task_id!r} waits for the signal {question.topic!r} as {form['type']}, "
            f"and got {value!r:.200}: {wrong}",
            kept="nothing was sent; the task keeps waiting",
            do=f"send a value of this form: {json.dumps(schema)[:300]}",
        )


def json_form(value: object) -> Any:
    """The value as it is in JSON, which is what a schema speaks of: a dataclass as a mapping, a moment as a text."""
    try:
        return msgspec.to_builtins(codec.decode(codec.encode(value)))
    except (InvalidInput, TypeError):
        return value  # what cannot be stored is refused by the write


def _decision(asked: Asked, value: object, text: str) -> dict[str, Any]:
    given = dict(value) if isinstance(value, dict) else {"decision": value}
    decision = given.get("decision")
    if isinstance(decision, bool):
        decision = "approve" if decision else "reject"
    if decision not in ("approve", "reject"):
        raise InvalidInput(f"{text!r} is approved or rejected; {value!r} is neither", do="answer approve or reject")
    if given.get("edited") is not None and (decision == "reject" or asked.editable is None):
        why = "what is rejected is not edited" if decision == "reject" else "nothing of it may be edited"
        raise InvalidInput(f"{text!r}: {why}", do="leave out what was edited, and say it in the comment")
    return {"decision": decision, "comment": str(given.get("comment") or ""), "edited": given.get("edited")}


def _choice(question: Question, value: object) -> dict[str, Any]:
    given = dict(value) if isinstance(value, dict) and "choice" in value else {"choice": value}
    choice = given["choice"]
    may = question.choices
    if choice not in may:
        more = "" if choice not in CHOICES else "; the code has continued without it, so it will not be tried again"
        raise InvalidInput(f"{choice!r} is not an answer to {question.text!r}{more}", do=f"answer {', '.join(may)}")
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
    if len(found) > 1:  # a person's question precedes one a program listens for
        found = [one for one in found if not one.is_about_signal] or found
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


def line_of(line: int, path: str) -> tuple[int, str]:
    """The line that has asked the question at `path` of a task that is on `line`, and its path there."""
    if not path.startswith(_LEFT):
        return line, path
    _, left, asked_at = path.split(_LEFT, 2)
    return int(left), asked_at


def path_now(line: int, asked_on: int, path: str) -> str:
    """The path of a question of line `asked_on` while the task is on `line`."""
    return path if asked_on == line else f"{_LEFT}{asked_on}{_LEFT}{path}"
