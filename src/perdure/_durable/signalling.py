"""Words sent to a running task: `task.signal(name, value)` outside, `signals.next(name, type)` inside.

A signal that comes before anybody waits for it is kept. Each is taken by one call, in the order sent.
"""

from __future__ import annotations

from typing import Any, TypeVar

from perdure._durable.asking import answer_to, recorded
from perdure._durable.run import Run
from perdure._ground import codec
from perdure._ground.ids import check_id
from perdure._replay import digest

T = TypeVar("T")


class signals:
    """Inside a durable function."""

    @staticmethod
    async def next(name: str, type: type[T]) -> T:
        """The next signal of this name, as this type; while there is none, the task is paused and holds no process.

        Raises:
            InvalidInput: what was sent does not fit the type; the next call takes the next signal.
        """
        check_id(name, "signal's name")
        text = f"waits for the signal {name!r}"

        async def put(run: Run, path: str) -> Any:
            found = await answer_to(run, path, "external_dependency", {"question": text}, topic=name)
            return codec.decode(codec.encode(found), type)

        shown = name.replace("|", "/").replace("#", "%")  # which divide paths
        value: T = await recorded(f"signal {shown}", digest((text,), {}), put, type)
        return value
