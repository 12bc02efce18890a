"""Ask a question inside a durable function: it is stored, its scope stays suspended, and the attempt is unwound when
nothing of it runs any more. The answer is found by the next attempt, at the same path.

Owns the path from a call to its recorded answer. reasons.py has the content of questions and the meaning of answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from perdure._durable.attempt import Attempt, Paused, Policy, RecordedCall, Scope, current, cut, stack_here, walk
from perdure._model import Asked, make_pause, to_stored
from perdure._store import PauseRow, Write
from perdure.errors import InvalidInput, LeaseLost, NoTask


class Open(Struct, frozen=True):
    """A question asked by an earlier attempt that has no answer yet."""

    question: dict[str, Any]
    asked_at: int
    due_at: int | None


async def answer_to(
    attempt: Attempt,
    path: str,
    reason: str,
    question: dict[str, Any],
    due_at: int | None = None,
    *,
    topic: str | None = None,
    counts: bool = False,
    at_once: bool = False,
) -> Any:
    """The answer to the question at this path. Unwinds the attempt while there is none.

    Until the question is stored, it delays the unwinding: an unknown pause would never be resumed. While it waits, it
    does not. `counts`: the caller already counts as a call under way. `at_once`: the caller is a plain function, which
    cannot wait for the others; their calls are cut off, and settled later.
    """
    if path in attempt.answers:
        return attempt.answers[path]
    if attempt.unwinding.has_begun:
        raise Paused
    if at_once:
        if not await _ask(attempt, path, reason, question, due_at, topic):
            attempt.unwinding.begin()
            raise Paused
        return attempt.answers[path]
    attempt.activity.bodies += not counts
    try:
        if not await _ask(attempt, path, reason, question, due_at, topic):
            await _wait(attempt, path)
        return attempt.answers[path]  # it came early, or while others of this attempt were at work
    finally:
        attempt.activity.bodies -= not counts


async def _wait(attempt: Attempt, path: str) -> None:
    if attempt.unwinding.has_begun:
        raise Paused
    attempt.activity.bodies -= 1
    try:
        await attempt.unwinding.suspend(path)
    finally:
        attempt.activity.bodies += 1


async def _ask(
    attempt: Attempt, path: str, reason: str, question: dict[str, Any], due_at: int | None, topic: str | None
) -> bool:
    """Have the question open, and be one that the attempt waits for; whether its answer is there by then."""
    if path not in attempt.unwinding.asked:
        # As the task's pause will be made of it: what no pause can be is refused here, where the code hears of it.
        make_pause(reason, str(question["question"]), question.get("details") or {}, attempt.store.clock.now_ms(), {})
        await attempt.flush()
        if await _opened(attempt, path, reason, question, due_at, topic) is None:
            lost = LeaseLost(attempt.task_id, "another attempt has the lease, so a question was refused")
            attempt.fence.close(lost)
            raise lost
        attempt.unwinding.asked[path] = Open(question, attempt.store.clock.now_ms(), due_at)
        if topic is not None and await _came_early(attempt, path):
            return True
    attempt.unwinding.questions[path] = (reason, question, due_at)
    return False


async def _came_early(attempt: Attempt, path: str) -> bool:
    """True if a signal was already there when its question was opened."""
    for row in await attempt.store.rows(PauseRow, "read_pauses", uid=attempt.uid):
        if row.path == path and row.answer is not None:
            attempt.answers[path] = attempt.store.unseal(attempt.uid, "answer", row.answer)
            return True
    return False


def note_question(
    attempt: Attempt, path: str, reason: str, question: dict[str, Any], *, topic: str | None = None
) -> None:
    """Store a question that no code waits for."""
    attempt.store.committer.submit(_opened(attempt, path, reason, question, None, topic))


def _opened(
    attempt: Attempt, path: str, reason: str, question: dict[str, Any], due_at: int | None, topic: str | None
) -> Write:
    params = {
        "path": path,
        "reason": reason,
        "topic": topic,
        "question": attempt.store.seal(attempt.uid, "pause", {**question, "stack": stack_here()}),
        "at": attempt.store.clock.now_ms(),
        "due_at": due_at,
        "expires_at": (question.get("asked") or {}).get("expires_at"),
    }
    return attempt.store.verb("open_pause", attempt.uid, params, key=attempt.task_id, fence=attempt.fence)


def question_of(text: str, asked: Asked, **details: Any) -> dict[str, Any]:
    """A question as it is stored: the text a person reads, the data the pause record shows, the allowed answers."""
    shown = {name: value for name, value in details.items() if value is not None}
    return {"question": text, "asked": to_stored(asked), "details": shown}


def close_questions(attempt: Attempt, path: str, kind: str, answer: dict[str, Any]) -> None:
    """Those of one call: its question, and the same asked once more behind an answer that did not fit."""
    for place in [one for one in attempt.unwinding.asked if one == path or one.startswith(f"{path}?")]:
        close_question(attempt, place, kind, answer)


def close_question(attempt: Attempt, path: str, kind: str, answer: dict[str, Any]) -> None:
    """Close a question: the code found the answer itself, or no longer asks."""
    attempt.unwinding.questions.pop(path, None)
    opened = attempt.unwinding.asked.pop(path, None)
    if opened is None:
        return
    params = {
        **attempt.store.event(attempt.uid, kind, {"question": opened.question.get("question", "")}),
        "path": path,
        "line": None,
        "answer": attempt.store.seal(attempt.uid, "answer", answer),
    }
    attempt.store.committer.submit(attempt.store.verb("answer_pause", attempt.uid, params, key=attempt.task_id))


# ── a recorded call ──────────────────────────────────────────────────────────────────────────────

Put = Callable[[Attempt, str], Awaitable[Any]]


class _PauseCall(RecordedCall):
    """A call that waits for an answer."""

    policy = Policy(waits_to_start=False)

    def __init__(self, scope: Scope, name: str, asked: bytes, put: Put, as_type: Any) -> None:
        super().__init__(scope, name, asked)
        self.op, self.as_type, self._put = name, as_type, put

    async def make(self) -> Any:
        # The answer itself is on disk. Its delivery to the code can be recorded later, as a short step's result is.
        self._is_kept = self.path in self.attempt.answers and self.attempt.activity.ordered == 1
        return await self._put(self.attempt, self.path)

    def fail(self, raised: BaseException) -> None:
        super().fail(raised)
        close_questions(self.attempt, self.path, "given up", {"expired": True})

    def is_waited_for(self) -> bool:
        return not self._is_kept

    async def cut_off(self) -> None:
        attempt = self.attempt
        # The cut first: an open question that no code waits for is harmless, a question that cannot be answered is not.
        place = cut(attempt, self.op, self.path, self.asked)
        close_questions(attempt, self.path, "withdrawn", {"withdrawn": True})
        if place is not None and (attempt.activity.ordered > 1 or attempt.always_replay):
            await attempt.hand_out(place[0])


async def recorded(name: str, asked: bytes, put: Put, as_type: Any = Any) -> Any:
    """The answer that `put` gives, from the journal if it is there; recorded when the code first gets it.

    An exception of `put` is recorded as well. A call that the code itself cancels is recorded as cancelled, and its
    question is closed. Until its answer reaches the gate the call counts as under way: if the attempt were unwound
    before that, it would wait for others although the code could continue.
    """
    scope = current.get()
    if scope is None:
        raise NoTask(name)
    if scope.is_body:
        raise InvalidInput(f"{name} is called inside a step", do="pause between steps")
    return await walk(_PauseCall(scope, name, asked, put, as_type))
