"""Inside a step: loops that go on after the last item that was marked, when a crash cut the step off.

The same as perdure.loops, without await. Written by tools/make_sync.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

from perdure import loops as _loops
from perdure._durable import each_of, here
from perdure.sync._calls import appending

T = TypeVar("T")
_READ = 1 << 20
__all__ = ["appending", "batches", "blocks", "each", "files", "lines", "run_script"]


def batches(items: Iterable[T], size: int, *, name: str = "batches", flush: bool = False) -> Iterator[list[T]]:
    """The items that are not done yet, `size` at a time."""
    return each_of(_loops.batches(items, size, name=name, flush=flush))


def blocks(path: str | Path, size: int = _READ, *, name: str = "blocks", flush: bool = False) -> Iterator[bytes]:
    """A file in blocks, from the byte after the last one that is done.

    Raises:
        Conflict: a part that was already read has changed.
    """
    return each_of(_loops.blocks(path, size, name=name, flush=flush))


def each(items: Iterable[T], *, name: str = "each", flush: bool = False) -> Iterator[T]:
    """The items that are not done yet. They must be in the same order each time."""
    return each_of(_loops.each(items, name=name, flush=flush))


def files(folder: str | Path, pattern: str = "**/*", *, name: str = "files", flush: bool = False) -> Iterator[Path]:
    """The files of a folder by name, after the last one that is done. A file added before that one is not seen.

    Raises:
        OSError: the folder does not exist; an empty loop would look as if every file were done.
    """
    return each_of(_loops.files(folder, pattern, name=name, flush=flush))


@overload
def lines(path: str | Path, *, encoding: str = ..., name: str = ..., flush: bool = ...) -> Iterator[str]: ...


@overload
def lines(path: str | Path, *, encoding: None, name: str = ..., flush: bool = ...) -> Iterator[bytes]: ...


def lines(
    path: str | Path, *, encoding: str | None = "utf-8", name: str = "lines", flush: bool = False
) -> Iterator[Any]:
    """The lines of a file with their ends, from the byte after the last one that is done.

    Raises:
        Conflict: a part that was already read has changed.
        InvalidInput: an encoding whose lines do not end with the byte 10, such as UTF-16; nothing was read.
    """
    return each_of(_loops.lines(path, encoding=encoding, name=name, flush=flush))


def run_script(
    connection: Any,
    script: str | Sequence[str],
    *,
    cursor: Literal["target", "whole", "journal"] = "target",
    name: str = "script",
) -> int:
    """Execute the statements that are not done yet. Returns how many those were.

    `connection` is a DB-API connection, blocking or async, or one of apsw. It is outside a transaction, and only
    this step uses it. The script has no BEGIN and no COMMIT of its own.

    Raises:
        InvalidInput: the connection is inside a transaction, the script begins or ends one, or there is no such
            cursor; nothing was executed.
        Exception: a statement raised it; the statements before it are done, except with cursor="whole".
    """
    return here(_loops.run_script(connection, script, cursor=cursor, name=name))
