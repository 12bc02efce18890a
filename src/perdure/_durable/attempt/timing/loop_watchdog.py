"""Name the line that holds up the event loop.

Plain code that waits (`time.sleep`, a blocking database driver, a long computation) holds up every task of its loop,
and nothing on the loop can notice. So a thread pings each loop that runs durable functions, twice in the time it
allows. If a loop does not answer, the thread looks at the stack of the loop's thread and logs the innermost line of the
user's own code, once per line.

The thread lives while there are attempts, and for a little longer. `PERDURE_BLOCKED_AFTER` sets the time (`500ms`;
default 1 s), and `off` switches it off.
"""

from __future__ import annotations

import asyncio
import linecache
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import Context
from datetime import timedelta
from types import CodeType, FrameType
from typing import Any, NamedTuple, Protocol

from perdure._durable.attempt.timing.wake_ups import LOOP_CODE
from perdure._ground.durations import require_timedelta
from perdure._ground.secrets.known_secrets import redact
from perdure._ground.traceback_text import is_ours, is_own
from perdure.errors import InvalidInput

log = logging.getLogger("perdure.durable")

VARIABLE = "PERDURE_BLOCKED_AFTER"
DEFAULT = timedelta(seconds=1)
_OFF = ("off", "0")
# A process that was stopped wakes with its time over: its loop gets so long to answer, as any other would.
_GRACE_SECONDS = 0.1
_LOOKS = 2  # in the time that is allowed
_IDLE_ROUNDS = 4  # without attempts, before the thread ends
_MOST_LINES = 200  # that are logged by one process


class Attempts(Protocol):
    """The attempts on a loop."""

    @property
    def attempts(self) -> Mapping[str, Any]: ...

    def task_id_of(self, task: asyncio.Future[Any] | None) -> str | None: ...


class Watched(NamedTuple):
    """A loop that carries attempts."""

    loop: asyncio.AbstractEventLoop
    thread: int
    attempts: Attempts


def allowed_time(environ: Mapping[str, str] = os.environ) -> float | None:
    """How many seconds a loop may be blocked; None if the check is off.

    Raises:
        InvalidInput: the variable holds something else than a length of time.
    """
    given = environ.get(VARIABLE, "")
    if given in _OFF:
        return None
    return (require_timedelta(VARIABLE, given, is_positive=True) if given else DEFAULT).total_seconds()


class LoopWatchdog:
    """The thread that asks the loops of this process. `wake` is called at every attempt, and costs a look."""

    def __init__(self, find: Callable[[], Iterable[Watched]]) -> None:
        self._find = find
        self._mutex = threading.Lock()
        self._told: set[tuple[str, int]] = set()
        self.is_awake = False

    def wake(self) -> None:
        with self._mutex:
            if self.is_awake:
                return
            self.is_awake = True
            try:
                allowed = allowed_time()
            except InvalidInput as problem:
                log.warning("%s; %s. It is taken as %g s", problem.what, problem.do, DEFAULT.total_seconds())
                allowed = DEFAULT.total_seconds()
            if allowed is None:
                return  # awake for ever, although there is nothing to do
            threading.Thread(target=self._watch, args=(allowed,), name="perdure-watchdog", daemon=True).start()

    def forget(self) -> None:
        """In a child process: the parent's thread does not exist here."""
        self._mutex, self.is_awake = threading.Lock(), False

    def _watch(self, allowed: float) -> None:
        idle, clock = 0, threading.Event()
        asked: dict[asyncio.AbstractEventLoop, _Question] = {}
        while idle < _IDLE_ROUNDS or not self._may_end():
            watched = {one.loop: one for one in self._find()}
            idle = 0 if watched else idle + 1
            asked = {loop: self._look(one, asked.get(loop), allowed) for loop, one in watched.items()}
            clock.wait(allowed / _LOOKS)

    def _look(self, one: Watched, question: _Question | None, allowed: float) -> _Question:
        """Ask the loop, or look for how long it has owed an answer."""
        if question is None or question.answered.is_set():
            return _ask(one.loop)
        question.looks += 1
        if question.looks % _LOOKS == 0 and not question.answered.wait(_GRACE_SECONDS):
            frame = sys._current_frames().get(one.thread)
            if frame is not None and not question.answered.is_set():
                self._tell(one, question, frame, allowed)
        return question

    def _may_end(self) -> bool:
        with self._mutex:
            self.is_awake = False
            if next(iter(self._find()), None) is not None:
                self.is_awake = True  # an attempt has begun that found us awake
            return not self.is_awake

    def _tell(self, one: Watched, question: _Question, frame: FrameType, allowed: float) -> None:
        found = frame_to_name(frame)
        if found is None or found.f_code in question.functions:
            return
        question.functions.add(found.f_code)
        file, line = found.f_code.co_filename, found.f_lineno
        if (file, line) in self._told or len(self._told) >= _MOST_LINES:
            return
        self._told.add((file, line))
        log.warning(
            "%s:%d in %s has held the event loop for more than %g s%s%s; every task on it waits. "
            "Await an async version of it, or call it by asyncio.to_thread()",
            file,
            line,
            found.f_code.co_qualname.rpartition("<locals>.")[2],
            allowed,
            _during(one),
            _text(found),
        )


class _Question:
    """Something for a loop to answer when it turns."""

    def __init__(self) -> None:
        self.answered, self.looks = threading.Event(), 0
        self.functions: set[CodeType] = set()  # that were found at work meanwhile: a long computation has many lines


def _ask(loop: asyncio.AbstractEventLoop) -> _Question:
    question = _Question()
    try:
        loop.call_soon_threadsafe(question.answered.set, context=Context())
    except RuntimeError:  # it was closed meanwhile
        question.answered.set()
    return question


def frame_to_name(innermost: FrameType) -> FrameType | None:
    """The innermost frame of the user's own code that the loop has called; else the innermost of a library."""
    frame: FrameType | None = innermost
    of_library: FrameType | None = None
    while frame is not None and frame.f_code not in LOOP_CODE:
        file = frame.f_code.co_filename
        if is_own(file):
            return frame
        if of_library is None and not is_ours(file) and "asyncio" not in file:
            of_library = frame
        frame = frame.f_back
    # An idle loop has no callback on its stack.
    is_waiting = frame is None or frame.f_code is _WAITS
    return None if is_waiting else of_library


_WAITS = asyncio.BaseEventLoop.run_forever.__code__


def _during(one: Watched) -> str:
    task_id = one.attempts.task_id_of(asyncio.current_task(one.loop))
    return "" if task_id is None else f", in task {task_id!r}"


def _text(frame: FrameType) -> str:
    text = ""
    with suppress(Exception):  # a loader of the user's own
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals).strip()[:80]
    return f": {redact(text)}" if text else ""
