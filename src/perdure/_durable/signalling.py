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
from perdure.errors import InvalidInput

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
            found = await answer_to(run, path, "external_dependency", {"question": text}, topic=name, counts=True)
            try:
                return codec.decode(codec.encode(found), type)
            except InvalidInput as problem:
                raise InvalidInput(
                    f"the signal {name!r} that was sent is no {getattr(type, '__name__', type)}: {problem.what}",
                    kept="the signals that were sent after it: the next call takes the next",
                    do="catch it to go on with the next one, or resume the task and send another",
                ) from None

        shown = name.replace("|", "/").replace("#", "%")  # which divide paths
        value: T = await recorded(f"signal {shown}", digest((text,), {}), put, type)
        return value
