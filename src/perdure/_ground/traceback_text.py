"""Write the traceback of an exception as text that is stored beside it: bounded, and without secrets.

    at shop.py:5 in price: return float(text)
    Traceback (most recent call last):
      File "/home/ada/shop.py", line 12, in order
        total = await price(page)
      File "/home/ada/shop.py", line 5, in price
        return float(text)
    ValueError: could not convert string to float: 'n/a'

The first line names the innermost frame of the user's own code, because that is what a person looks for. The rest is
in Python's own form. Frames of perdure are left out. When there are too many frames, those of libraries go first.

An exception that was rebuilt from a journal brings the text of its first raise with it (`remember_trace`), so that
a replay tells the same place as the first run did.
"""

from __future__ import annotations

import functools
import linecache
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple

from perdure._ground.exception_text import name_and_message, printable
from perdure._ground.secrets.known_secrets import redact

MOST_FRAMES, MOST_BYTES = 24, 6000  # of one exception; of the whole text
_MOST_EXCEPTIONS, _LONGEST_LINE, _LONGEST_MESSAGE = 8, 200, 1000
_TITLE = "Traceback (most recent call last):"
_BECAUSE = "The above exception was the direct cause of the following exception:"
_DURING = "During handling of the above exception, another exception occurred:"
TRACE = "_perdure_trace"
_PERDURE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class _Frame(NamedTuple):
    file: str
    line: int
    function: str
    code: str


def trace_of(error: BaseException) -> str:
    """The traceback as text; "" if the exception was never raised."""
    chain = list(_chain(error))
    parts: list[str] = []
    for number, (one, link) in enumerate(chain):
        parts += [link, ""] if number else []
        parts += [*_lines(one), ""]
    if not any(line.startswith("  ") for line in parts):
        return ""
    place = _place(one for one, _ in reversed(chain))
    text = redact("\n".join([*([place] if place else []), *parts[:-1]]))
    return _bounded(printable(text))


def place_in(trace: str) -> str:
    """The line of a trace that names where the user's code stood; "" when it has none."""
    first = trace.partition("\n")[0]
    return first if first.startswith("at ") else ""


def remember_trace(error: BaseException, trace: str) -> None:
    """Have an exception that was rebuilt tell where it was raised first."""
    if trace:
        with suppress(AttributeError, TypeError):  # a class that takes no more attributes
            setattr(error, TRACE, trace)


# ── one exception ────────────────────────────────────────────────────────────────────────────────


def _lines(error: BaseException) -> list[str]:
    """An exception with its frames, and with the frames of its first raise if it was rebuilt from a journal."""
    frames = _frames(error.__traceback__)
    before = _remembered(error)
    lines = [_TITLE, *_told(frames)] if frames or before else []
    if before:
        return [*lines, *before]
    lines.append(_last_line(error))
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions[:_MOST_EXCEPTIONS]:
            lines += [f"  | {line}" for line in _lines(member)]
        if len(error.exceptions) > _MOST_EXCEPTIONS:
            lines.append(f"  | and {len(error.exceptions) - _MOST_EXCEPTIONS} more exceptions")
    return lines


def _remembered(error: BaseException) -> list[str]:
    """The trace of the first raise, without its first lines: it continues where the caller's frames end."""
    lines = str(getattr(error, TRACE, "")).split("\n")
    if lines and lines[0].startswith("at "):
        del lines[0]
    if lines and lines[0] == _TITLE:
        del lines[0]
    return [line for line in lines if line] if any(lines) else []


def _last_line(error: BaseException) -> str:
    try:
        told = name_and_message(error)
    except Exception:  # the user's own __str__
        told = f"{type(error).__name__} (its message cannot be read)"
    return told if len(told) <= _LONGEST_MESSAGE else f"{told[:_LONGEST_MESSAGE]}…"


def _told(frames: Sequence[_Frame]) -> Iterator[str]:
    """The frames as Python tells them, at most so many."""
    kept = _chosen(frames)
    left_out = 0
    for number, frame in enumerate(frames):
        if number not in kept:
            left_out += 1
            continue
        if left_out:
            yield f"  [{left_out} frame{'' if left_out == 1 else 's'} left out]"
            left_out = 0
        yield f'  File "{frame.file}", line {frame.line}, in {frame.function}'
        if frame.code:
            yield f"    {frame.code}"


def _chosen(frames: Sequence[_Frame]) -> set[int]:
    """The user's own frames, innermost first; then those of libraries, innermost first."""
    if len(frames) <= MOST_FRAMES:
        return set(range(len(frames)))
    inwards = sorted(range(len(frames)), key=lambda number: (not is_own(frames[number].file), -number))
    return {0, *inwards[: MOST_FRAMES - 1]}


def _frames(traceback: TracebackType | None) -> list[_Frame]:
    """The frames outside perdure; of an exception that only perdure has raised, the last one."""
    found, last = [], None
    while traceback is not None:
        last = traceback
        if not traceback.tb_frame.f_code.co_filename.startswith(_PERDURE):
            found.append(_frame(traceback))
        traceback = traceback.tb_next
    return found or ([] if last is None else [_frame(last)])


def _frame(traceback: TracebackType) -> _Frame:
    code, line = traceback.tb_frame.f_code, traceback.tb_lineno or 0
    text = ""
    with suppress(Exception):  # a loader of the user's own
        text = linecache.getline(code.co_filename, line, traceback.tb_frame.f_globals).strip()
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return _Frame(code.co_filename, line, name, text[:_LONGEST_LINE])


def is_ours(file: str) -> bool:
    """True if a file belongs to perdure."""
    return file.startswith(_PERDURE)


@functools.lru_cache(maxsize=256)
def is_own(file: str) -> bool:
    """True if a file is the user's own: not perdure's, not Python's, not an installed library's."""
    if file.startswith((_PERDURE, "<frozen")) or f"{os.sep}site-packages{os.sep}" in file:
        return False
    return not file.startswith(_installed())


@functools.cache
def _installed() -> tuple[str, ...]:
    import sysconfig  # only a failure needs it

    places = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return tuple(sorted({place + os.sep for place in places if place}))


# ── the chain ────────────────────────────────────────────────────────────────────────────────────


def _chain(error: BaseException) -> Iterable[tuple[BaseException, str]]:
    """The exceptions that led to this one, oldest first, each with its relation to the one before."""
    found: list[tuple[BaseException, str]] = []
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen and len(found) < _MOST_EXCEPTIONS:
        seen.add(id(one))
        before, link = (one.__cause__, _BECAUSE) if one.__cause__ is not None else (one.__context__, _DURING)
        if hasattr(one, TRACE) or (one.__cause__ is None and one.__suppress_context__):
            before = None  # a rebuilt one tells what it was rebuilt from
        found.append((one, link if before is not None else ""))
        one = before
    return reversed(found)


def _place(errors: Iterable[BaseException]) -> str:
    """The innermost frame of the user's own code, of the newest exception that has one."""
    for error in errors:
        before = place_in(str(getattr(error, TRACE, "")))
        if before:
            return before
        frames = _frames(error.__traceback__)
        own = [frame for frame in frames if is_own(frame.file)] or frames
        if own:
            code = f": {own[-1].code}" if own[-1].code else ""
            return f"at {os.path.basename(own[-1].file)}:{own[-1].line} in {own[-1].function}{code}"
    return ""


def _bounded(text: str) -> str:
    """A text of bounded length; the middle is left out, because the raise is at the end."""
    if len(text) <= MOST_BYTES and len(text.encode()) <= MOST_BYTES:
        return text
    lines = text.split("\n")
    head: list[str] = []
    tail: list[str] = []
    room = MOST_BYTES - 100
    while lines and room > 0:
        take_head = len(head) <= len(tail) // 3
        line = lines.pop(0 if take_head else -1)
        room -= len(line.encode()) + 1
        if room < 0:
            lines.append(line)
            break
        (head if take_head else tail).append(line)
    return "\n".join([*head, f"  [{len(lines)} lines left out]", *reversed(tail)])
