"""Words sent to a running task: `task.signal(name, value)` outside, `signals.next(name, type)` inside.

A signal sent before a call waits for it is kept. Each is taken by one call, in the order sent. The type is stored with
the wait, so that a value that does not fit is refused to its sender (perdure/_tasks/pauses/messages.py). A signal that
was sent before the wait, or that only the type itself can check, is set aside if it does not fit, and the wait
continues.
"""

from __future__ import annotations

from typing import Any, TypeVar

from perdure._durable.attempt import Attempt
from perdure._durable.pauses.questions import answer_to, recorded
from perdure._durable.values import schema_of
from perdure._ground.encoding import codec
from perdure._ground.ids import check_id
from perdure._replay import digest

T = TypeVar("T")


async def next(name: str, type: type[T]) -> T:
    """The next signal of this name, as this type; while there is none, the task is paused and holds no process.

    One that does not fit is refused to its sender. One that was sent before this call and does not fit is set
    aside, and `perdure where` tells it.
    """
    check_id(name, "signal's name")
    text = f"the signal {name!r}"
    form = {"type": getattr(type, "__name__", str(type)), "schema": schema_of(type)}

    async def put(attempt: Attempt, path: str) -> Any:
        aside, said = 0, text
        while True:
            place = f"{path}?{aside}" if aside else path
            question = {"question": said, "signal": form}
            found = await answer_to(attempt, place, "external_dependency", question, topic=name, counts=True)
            try:
                return codec.decode(codec.encode(found), type)
            except Exception:
                aside += 1
                said = f"{text} ({aside} sent before set aside: not {form['type']}, the last one {found!r:.100})"

    shown = name.replace("|", "/").replace("#", "%")  # which divide paths
    value: T = await recorded(f"signal {shown}", digest((f"waits for {text}",), {}), put, type)
    return value
