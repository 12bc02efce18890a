"""Begin an attempt anew when the connection to one of its kept sessions breaks.

The process of a session can die under a living agent: killed, out of memory, or with its server. Only opening
the session again tells what became of the transaction. So a durable function does not see the broken connection, and
it is not recorded: the attempt is replayed at once, as if its process had died. The replay opens the session again. It
continues in the transaction if that was kept, runs the block again if it was rolled back, and asks the server about a
COMMIT that was under way (transaction_blocks.py).

A statement that breaks its session each time is repeated at most MOST_TIMES at the same place.
An effect is not run again by this: if its connection breaks, its outcome is uncertain.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from perdure._durable import is_in_effect, unit_call
from perdure._store import Fence
from perdure.errors import SessionLost

MOST_TIMES = 3

P = ParamSpec("P")
R = TypeVar("R")


class Breakable(Protocol):
    """A way into a kept session."""

    block: str

    @property
    def label(self) -> str: ...

    @property
    def is_once(self) -> bool: ...

    async def is_broken_by(self, error: Exception) -> bool:
        """True if this error says that the session's process or its server has gone, and not a newer client come."""
        ...


B = TypeVar("B", bound=Breakable)
Method = Callable[Concatenate[B, P], Coroutine[Any, Any, R]]


@dataclass
class _Breaks:
    """Those of one attempt."""

    times: Counter[tuple[str, str]] = field(default_factory=Counter)  # by session and place
    last: dict[str, str] = field(default_factory=dict)  # by session: why it is not opened again


_breaks: weakref.WeakKeyDictionary[Fence, _Breaks] = weakref.WeakKeyDictionary()


def mended(method: Method[B, P, R]) -> Method[B, P, R]:
    """For whatever a durable function asks of a session."""

    @wraps(method)
    async def asked(self: B, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await method(self, *args, **kwargs)
        except Exception as error:
            if unit_call() is not None and self.is_once and await self.is_broken_by(error):
                await _begin_anew(self.label, self.block, error)
            raise

    return asked


async def _begin_anew(label: str, block: str, error: Exception) -> None:
    """The connection to a session is broken: replay the attempt. Returns where that cannot be done.

    Raises:
        SessionLost: it has been done often enough.
    """
    place = unit_call()
    if place is None or is_in_effect() or place.attempt.is_ending:
        return
    attempt, body = place.attempt, place.scope if place.is_body else None
    breaks, where = _breaks.setdefault(attempt.fence, _Breaks()), (label, body or f"block {block}")
    breaks.times[where] += 1
    if breaks.times[where] > MOST_TIMES:
        breaks.last[label] = f"its connection broke {MOST_TIMES + 1} times at the same place: {_said_by(error)}"
    if label in breaks.last:
        raise SessionLost(label, breaks.last[label])
    await attempt.unwinding.begin_anew(f"~broken {label} {len(attempt.unwinding.pausing)}", body)


def _said_by(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
