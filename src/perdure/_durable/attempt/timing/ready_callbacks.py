"""The callbacks that an event loop is about to run.

The next result reaches a durable function only when none of its own code is about to run (delivery_order.py). asyncio's
loop exposes its queue. uvloop does not: there each callback of durable functions' own code is counted from `call_soon`,
which tasks and futures use, until it has run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sized
from contextvars import Context, copy_context
from typing import Any, Final, Protocol

from perdure._durable.attempt.scopes import current

_KEPT: Final = "_perdure_ready_calls"


class Ready(Sized, Protocol):
    """The callbacks the loop is about to run; empty only if none of them belongs to a durable function."""

    def __iter__(self) -> Iterator[Any]:
        """Yields handles like those of asyncio: with `_cancelled` and `_context`."""
        ...


def ready_calls(loop: asyncio.AbstractEventLoop) -> Ready:
    """The callbacks this loop is about to run. Callbacks added before the first use may be missing."""
    shown: Ready | None = getattr(loop, "_ready", None)
    if isinstance(shown, deque):
        return shown
    own = vars(loop)
    if _KEPT not in own:
        own[_KEPT] = _Counted(loop)
        own["call_soon"] = own[_KEPT].call_soon
    found: Ready = own[_KEPT]
    return found


class _Call:
    """One callback of a durable function's own code."""

    __slots__ = ("_args", "_callback", "_context", "_handle", "_queue")

    def __init__(self, queue: dict[_Call, None], callback: Any, args: tuple[Any, ...], context: Context) -> None:
        self._queue, self._callback, self._args, self._context = queue, callback, args, context
        self._handle: asyncio.Handle | None = None

    def follow(self, handle: asyncio.Handle) -> None:
        self._handle = handle
        self._queue[self] = None

    @property
    def _cancelled(self) -> bool:
        return self._handle is not None and self._handle.cancelled()

    def run(self) -> None:
        self._queue.pop(self, None)
        self._callback(*self._args)


class _Counted:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._call_soon = loop.call_soon
        self._queue: dict[_Call, None] = {}

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        scope = current.get() if context is None else context.get(current)
        if scope is None or scope.is_body:
            return self._call_soon(callback, *args, context=context)
        if context is None:
            context = copy_context()
        call = _Call(self._queue, callback, args, context)
        handle = self._call_soon(call.run, context=context)
        call.follow(handle)
        return handle

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[_Call]:
        for call in [call for call in self._queue if call._cancelled]:
            del self._queue[call]
        return iter(self._queue)
