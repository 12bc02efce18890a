"""The plain functions between a durable function and the call it waits for, for people to read.

    checkout(order='o-1') at shop.py:30: total = await prepare(items)
    prepare(items=[1, 2]) at shop.py:20: await pause.approval("Charge?")

The journal knows the recorded calls and nothing in between. A question keeps the stack of the code that asks it; the
note of a long step and a saved cut keep the stack at that moment. One line per function, outermost first, with its
arguments as they are then: bounded, and without secrets.
"""

from __future__ import annotations

import asyncio
import linecache
import os
import reprlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

from perdure._durable.attempt.scopes import current
from perdure._ground.exception_text import printable, without_breaks
from perdure._ground.secrets.known_secrets import redact
from perdure._ground.secrets.secret_forms import HIDDEN, is_telling
from perdure._ground.traceback_text import is_ours, is_own

MOST_CALLS = 20
_LONGEST_LINE, _LONGEST_CODE = 240, 80
_VARIABLE, _KEYWORDS = 0x04, 0x08  # CO_VARARGS, CO_VARKEYWORDS
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60
_short.maxlevel = 3


def stack_here() -> list[str]:
    """The functions on the caller's stack, up to its asyncio task."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_loop(frame):
        frames.append(frame)
        frame = frame.f_back
    return _told(list(reversed(frames)))


def stack_of(task: asyncio.Task[Any]) -> list[str]:
    """The functions that a suspended task waits in."""
    return _told(list(awaiting_frames(task)))


def awaiting_frames(task: asyncio.Future[Any] | None) -> Iterator[FrameType]:
    """The frames that a suspended task waits in, outermost first."""
    return _awaiting(task.get_coro()) if isinstance(task, asyncio.Task) else iter(())


def stacks_now() -> dict[str, list[str]]:
    """The same for every scope of the durable function that is running here, by its path; the main one's is ""."""
    scope = current.get()
    if scope is None:
        return {}
    attempt, here = scope.attempt, asyncio.current_task()
    tasks = {alive.path: task for task, alive in attempt.activity.alive.values()}
    found = {"": attempt.body, **tasks}
    return {
        path: stack_here() if task is here else stack_of(task)
        for path, task in found.items()
        if isinstance(task, asyncio.Task) and not task.done()
    }


def _is_loop(frame: FrameType) -> bool:
    return frame.f_code.co_filename.endswith(os.path.join("asyncio", "events.py"))


def _awaiting(awaited: Any) -> Iterator[FrameType]:
    """The frames of a chain of coroutines, each waiting for the next."""
    for _ in range(1000):  # a longer chain is a ring of the user's own awaitables
        frame = None
        for kind in ("cr", "gi", "ag"):
            frame = getattr(awaited, f"{kind}_frame", None)
            if frame is not None:
                break
        if frame is None:
            return
        yield frame
        awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else f"{kind}_await", None)


def _told(frames: list[FrameType]) -> list[str]:
    own = [frame for frame in frames if is_own(frame.f_code.co_filename)]
    others = [frame for frame in frames if not is_ours(frame.f_code.co_filename)]
    chosen = own or others
    lines = [_line(frame) for frame in chosen[-MOST_CALLS:]]
    left = len(chosen) - len(lines)
    return [f"[{left} more around]", *lines] if left else lines


def _line(frame: FrameType) -> str:
    code = frame.f_code
    text = ""
    with suppress(Exception):  # a loader of the user's own
        text = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()[:_LONGEST_CODE]
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    place = f" at {os.path.basename(code.co_filename)}:{frame.f_lineno}" + (f": {text}" if text else "")
    call = f"{name}({', '.join(_arguments(frame))})"
    call = call if len(call) <= _LONGEST_LINE else f"{call[:_LONGEST_LINE]}…)"
    return printable(redact(f"{call}{place}"))


def _arguments(frame: FrameType) -> Iterator[str]:
    code, values = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & _VARIABLE) + bool(code.co_flags & _KEYWORDS)
    for name in code.co_varnames[:count]:
        if name in ("self", "cls") or name not in values or name.startswith("."):  # ".0" of a comprehension
            continue
        yield f"{name}={_value(name, values[name])}"


def _value(name: str, value: Any) -> str:
    if isinstance(value, str | bytes) and is_telling(name):
        return HIDDEN
    try:
        return without_breaks(_short.repr(value))
    except Exception:  # the user's own __repr__
        return f"<{type(value).__name__}>"
