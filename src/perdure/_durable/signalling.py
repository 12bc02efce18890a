"""Words sent to a running task: `task.signal(name, value)` outside, `signals.next(name, type)` inside.

A signal that comes before anybody waits for it is kept. Each is taken by one call, in the order sent.
"""

from __future__ import annotations

from typing import TypeVar

from perdure._durable.pauses import asked_question

T = TypeVar("T")


class signals:
    """Inside a durable function."""

    @staticmethod
    async def next(name: str, type: type[T]) -> T:
        """The next signal of this name; while there is none, the task is paused and holds no process."""
        question = {"question": f"waits for the signal {name!r}"}
        value: T = await asked_question(f"signal {name}", "external_dependency", question, type, topic=name)
        return value
