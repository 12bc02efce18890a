"""Name what wakes a durable function without a place in its journal, the first time it happens.

Results of steps, timers and threads of `to_thread` are recorded, and a replay wakes the code by them in the same order.
A socket, a pipe, a child process, a signal or a thread that calls back is not recorded: such code can diverge after a
crash although it has not changed. Inside a step all of that is fine.

So the calls of a loop that open such things are looked at: made by a durable function's own code outside a step, they
are logged with their line. On asyncio's loop each event of a socket, and everywhere each call from another thread, is
looked at too: if it wakes a durable function's own code, that is logged. Each line is named once. Not noticed are
connections that were opened before the first attempt on their loop, and other code of the loop that sets an event or
ends a future the durable function waits for.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from contextvars import Context
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from perdure._durable.attempt.call_stack import awaiting_frames
from perdure._durable.attempt.scopes import Scope, current
from perdure._durable.attempt.timing.ready_callbacks import ready_calls
from perdure._ground.traceback_text import is_ours, is_own

if TYPE_CHECKING:
    from perdure._durable.attempt.attempt import Attempt

log = logging.getLogger("perdure.durable")

_SOCKET, _CHILD, _SIGNAL, _THREAD = "a socket or pipe", "a child process", "a signal", "another thread"
_OPENERS: Final = {
    **dict.fromkeys(("subprocess_exec", "subprocess_shell"), _CHILD),
    **dict.fromkeys(("connect_read_pipe", "connect_write_pipe", "add_reader", "add_writer"), _SOCKET),
    **dict.fromkeys(("create_connection", "create_unix_connection", "create_datagram_endpoint"), _SOCKET),
    **dict.fromkeys(("create_server", "create_unix_server", "connect_accepted_socket", "start_tls"), _SOCKET),
    **dict.fromkeys(("sock_recv", "sock_recv_into", "sock_recvfrom", "sock_sendall", "sock_sendto"), _SOCKET),
    **dict.fromkeys(("sock_connect", "sock_accept", "sock_sendfile", "sendfile"), _SOCKET),
    "add_signal_handler": _SIGNAL,
}
_told: set[tuple[str, int]] = set()
_MOST_LINES = 200


def install(loop: Any) -> None:
    """Have this loop's openings and calls from other threads looked at."""
    own = vars(loop)
    for name, how in _OPENERS.items():
        call = getattr(loop, name, None)
        if call is not None:
            own[name] = _opener(call, how)
    looks = _Looks(loop)
    own["call_soon_threadsafe"] = looks.from_thread
    if isinstance(loop, asyncio.SelectorEventLoop):
        own["_add_reader"], own["_add_writer"] = looks.of(loop._add_reader), looks.of(loop._add_writer)  # type: ignore[attr-defined]


def _opener(call: Callable[..., Any], how: str) -> Callable[..., Any]:
    def opened(*args: Any, **kwargs: Any) -> Any:
        scope = current.get()
        if scope is not None and not scope.is_body and not scope.attempt.is_ending:
            frame = _user_frame(sys._getframe(1))
            if frame is not None:
                _name(scope.attempt, frame.f_code.co_filename, frame.f_lineno, f"uses {how}")
        return call(*args, **kwargs)

    return opened


def _user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own code. None if perdure's code is in between: those wake-ups are known."""
    while frame is not None:
        file = frame.f_code.co_filename
        if is_own(file):
            return frame
        if is_ours(file) and not file.endswith(_BETWEEN):
            return None
        frame = frame.f_back
    return None


_BETWEEN = tuple(
    os.path.join("_durable", name) for name in ("scopes.py", "ready_callbacks.py", "unrecorded_wake_ups.py")
)


class _Looks:
    """Examines the callbacks that come from outside."""

    def __init__(self, loop: Any) -> None:
        self._loop, self._ready = loop, ready_calls(loop)
        self._call_soon_threadsafe = loop.call_soon_threadsafe

    def from_thread(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        if is_ours(sys._getframe(1).f_code.co_filename):
            found: asyncio.Handle = self._call_soon_threadsafe(callback, *args, context=context)
        else:
            found = self._call_soon_threadsafe(self._run, _THREAD, callback, *args, context=context)
        return found

    def of(self, add: Callable[..., Any]) -> Callable[..., Any]:
        """The same way to hear of a socket, with a look at what it wakes."""

        def added(fd: Any, callback: Any, *args: Any) -> Any:
            if is_ours(_beyond_asyncio(sys._getframe(1))):
                return add(fd, callback, *args)
            return add(fd, self._run, _SOCKET, callback, *args)

        return added

    def _run(self, how: str, callback: Any, *args: Any) -> None:
        ready = self._ready
        before = len(ready)
        callback(*args)
        if len(ready) > before:
            for handle in list(islice(ready, before, None)):
                scope: Scope | None = handle._context.get(current)
                if scope is None or scope.is_body or scope.attempt.is_ending or _passes_cancellation(handle):
                    continue
                _name_waiting(scope, how)


def _passes_cancellation(handle: Any) -> bool:
    """True if a callback only links a thread's future to asyncio's; run_in_executor adds one per thread."""
    return getattr(handle._callback, "__qualname__", "") == "_chain_future.<locals>._call_check_cancel"


def _beyond_asyncio(frame: FrameType | None) -> str:
    """The file of the innermost frame outside asyncio."""
    while frame is not None and f"{os.sep}asyncio{os.sep}" in frame.f_code.co_filename:
        frame = frame.f_back
    return "" if frame is None else frame.f_code.co_filename


def _name_waiting(scope: Scope, how: str) -> None:
    """Name the line that this scope waits in, unless it waits inside perdure."""
    for frame in reversed(list(awaiting_frames(scope.whose()))):
        file = frame.f_code.co_filename
        if is_own(file):
            _name(scope.attempt, file, frame.f_lineno, f"is woken by {how}")
            return
        if is_ours(file):
            return


def _name(attempt: Attempt, file: str, line: int, what: str) -> None:
    if (file, line) in _told or len(_told) >= _MOST_LINES:
        return
    _told.add((file, line))
    log.warning(
        "%s:%d in the durable function of task %r %s outside a step. That is not recorded: after a crash it "
        "happens again, at another moment, and the task may diverge. Do it in a step",
        file,
        line,
        attempt.task_id,
        what,
    )
