"""Take perdure's own frames out of the traceback of an exception that leaves perdure.

A failed task passes through a dozen frames of perdure between the user's `app.run` and the user's function. Python
prints all of them, and the two lines that matter are lost among them. So the traceback that the caller gets has only
the frames of the user's code and of libraries. Frames of asyncio that perdure called are left out too.
`PERDURE_DEBUG=1` keeps all frames.

A defect of perdure must stay visible: if an exception that is not perdure's own was raised by perdure's code, the
frames behind the last one of the user stay. The trace that is stored with a task is written before this
(traceback_text.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType

from perdure._ground.traceback_text import TRACE, is_ours
from perdure.errors import PerdureError

_MOST_EXCEPTIONS = 100
_LOOPS = tuple(f"{os.sep}{name}" for name in (f"asyncio{os.sep}", f"concurrent{os.sep}", "threading.py"))


def fold(error: BaseException) -> None:
    """Take perdure's own frames out of the tracebacks of an exception and of its causes."""
    if os.environ.get("PERDURE_DEBUG"):
        return
    for one in _related(error):
        is_defect = not (isinstance(one, PerdureError) or hasattr(one, TRACE))
        one.__traceback__ = _without_ours(one.__traceback__, is_defect=is_defect)


def _without_ours(traceback: TracebackType | None, *, is_defect: bool) -> TracebackType | None:
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    last = max((number for number, one in enumerate(frames) if not _is_ours(one)), default=-1)
    if last < 0:
        return frames[0] if frames else None
    kept: list[TracebackType] = []
    was_hidden = False
    for number, one in enumerate(frames):
        was_hidden = _is_ours(one) or (was_hidden and _is_of_a_loop(one))
        if not was_hidden or (number > last and is_defect):
            kept.append(one)
    found: TracebackType | None = None
    for one in reversed(kept):
        found = TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return found


def _is_ours(traceback: TracebackType) -> bool:
    return is_ours(traceback.tb_frame.f_code.co_filename)


def _is_of_a_loop(traceback: TracebackType) -> bool:
    file = traceback.tb_frame.f_code.co_filename
    return any(name in file for name in _LOOPS)


def _related(error: BaseException) -> Iterator[BaseException]:
    """The exception, its causes and contexts, and the members of groups; each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting and len(seen) < _MOST_EXCEPTIONS:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
