"""Stop inside a durable function until somebody answers, without holding a process.

The question is stored first. Then its scope stays suspended; the attempt is unwound when nothing of it
runs any more. The answer is found by the next attempt, at the same path.
"""

from __future__ import annotations

from typing import Any, TypeVar

from perdure._durable.run import Paused, Run
from perdure._durable.scopes import current
from perdure._ground import codec
from perdure._model import Entry
from perdure._replay import Diverged, Recorded, digest
from perdure._store import Write
from perdure.errors import InvalidInput, LeaseLost, NoTask

T = TypeVar("T")


async def answer_to(
    run: Run,
    path: str,
    reason: str,
    question: dict[str, Any],
    due_at: int | None = None,
    *,
    topic: str | None = None,
    is_body: bool = False,
    at_once: bool = False,
) -> Any:
    """What was answered to the question at this path; unwinds the attempt while nothing was.

    `is_body`: it is asked inside a step, which then does not hold the unwinding up. `at_once`: by a plain
    function, which cannot wait for the others; what they have under way is cut off, and settled later.
    """
    if path in run.answers:
        return run.answers[path]
    if run.unwinding:
        raise Paused
    await run.flush()
    if await _opened(run, path, reason, question, due_at, topic) is None:
        lost = LeaseLost(run.task_id, "another attempt has the lease, so a question was refused")
        run.fence.close(lost)
        raise lost
    if topic is not None and await _came_early(run, path):
        return run.answers[path]
    run.questions[path] = (reason, question, due_at)
    if at_once:
        run.unwind()
        raise Paused
    run.bodies -= is_body
    try:
        await run.suspend(path)
    finally:
        run.bodies += is_body
    raise Paused


async def _came_early(run: Run, path: str) -> bool:
    """Whether a signal was there already when its question was opened."""
    for row in await run.store.query("read_pauses", uid=run.uid):
        if row[0] == path and row[6] is not None:
            run.answers[path] = run.store.unseal(run.uid, "answer", row[6])
            return True
    return False


def note_question(run: Run, path: str, reason: str, question: dict[str, Any], *, topic: str | None = None) -> None:
    """Have a question on record that nobody waits for."""
    run.store.committer.submit(_opened(run, path, reason, question, None, topic))


def _opened(run: Run, path: str, reason: str, question: dict[str, Any], due_at: int | None, topic: str | None) -> Write:
    params = {
        "path": path,
        "reason": reason,
        "topic": topic,
        "question": run.store.seal(run.uid, "pause", question),
        "at": run.store.clock.now_ms(),
        "due_at": due_at,
    }
    return run.store.verb("open_pause", run.uid, params, key=run.task_id, fence=run.fence)


class pause:
    """Inside a durable function: stop for a typed reason, go on with the answer."""

    @staticmethod
    async def input(question: str, type: type[T]) -> T:
        """A person's answer, as this type."""
        answer: T = await asked_question("pause.input", "human_input", {"question": question}, type)
        return answer


async def asked_question(
    name: str, reason: str, question: dict[str, Any], as_type: Any, *, topic: str | None = None
) -> Any:
    """The answer to a question of the function itself, recorded when it is first given to the code."""
    scope = current.get()
    if scope is None:
        raise NoTask(name)
    if scope.is_body:
        raise InvalidInput(f"{name} is called inside a step", do="pause between steps")
    run = scope.run
    run.fence.check()
    asked = digest((question["question"],), {})
    answer = run.cursor.ask(scope.path, name, asked)
    if type(answer) is Recorded:
        await run.hand_out(answer.position)
        assert answer.entry.value is not None
        return codec.decode(answer.entry.value, as_type)
    if isinstance(answer, Diverged):
        error = run.diverged(answer)
        run.fence.close(error)
        raise error
    value = await answer_to(run, answer.path, reason, question, topic=topic)
    data, copy = codec.round_trip(value, as_type)
    position, write = run.record(
        Entry("result", name, answer.path, asked, data, at=run.store.clock.now_ms(), epoch=run.epoch), urgent=True
    )
    if run.scopes > 1:
        run.gate.expect(position)
    await write
    await run.hand_out(position)
    return copy
