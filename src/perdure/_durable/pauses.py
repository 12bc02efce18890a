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
from perdure.errors import InvalidInput, NoTask

T = TypeVar("T")


async def ask_person(run: Run, path: str, question: str, details: dict[str, Any]) -> dict[str, Any]:
    """The answer to an uncertain effect: found, or waited for without a process."""
    found: dict[str, Any] = await answer_to(run, path, "human_input", {"question": question, "details": details})
    return found


async def answer_to(run: Run, path: str, reason: str, question: dict[str, Any], due_at: int | None = None) -> Any:
    """What was answered to the question at this path; unwinds the attempt while nothing was."""
    if path in run.answers:
        return run.answers[path]
    if run.unwinding:
        raise Paused
    params = {
        "path": path,
        "reason": reason,
        "question": run.store.seal(run.uid, "pause", question),
        "at": run.store.clock.now_ms(),
        "due_at": due_at,
    }
    await run.flush()
    await run.store.verb("open_pause", run.uid, params, key=run.task_id, fence=run.fence)
    run.questions[path] = (reason, question, due_at)
    await run.suspend(path)
    raise Paused


class pause:
    """Inside a durable function: stop for a typed reason, go on with the answer."""

    @staticmethod
    async def input(question: str, type: type[T]) -> T:
        """A person's answer, as this type."""
        answer: T = await _asked("input", "human_input", {"question": question}, type)
        return answer


async def _asked(op: str, reason: str, question: dict[str, Any], as_type: Any) -> Any:
    scope = current.get()
    if scope is None:
        raise NoTask(f"pause.{op}")
    if scope.is_body:
        raise InvalidInput(f"pause.{op} is called inside a step", do="pause between steps")
    run = scope.run
    run.fence.check()
    name, asked = f"pause.{op}", digest((question["question"],), {})
    answer = run.cursor.ask(scope.path, name, asked)
    if type(answer) is Recorded:
        await run.hand_out(answer.position)
        assert answer.entry.value is not None
        return codec.decode(answer.entry.value, as_type)
    if isinstance(answer, Diverged):
        error = run.diverged(answer)
        run.fence.close(error)
        raise error
    value = await answer_to(run, answer.path, reason, question)
    data, copy = codec.round_trip(value, as_type)
    position, write = run.record(
        Entry("result", name, answer.path, asked, data, at=run.store.clock.now_ms(), epoch=run.epoch), urgent=True
    )
    if run.scopes > 1:
        run.gate.expect(position)
    await write
    await run.hand_out(position)
    return copy
