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
        Conflict: what was read before is no longer there.
    """
    return each_of(_loops.blocks(path, size, name=name, flush=flush))


def each(items: Iterable[T], *, name: str = "each", flush: bool = False) -> Iterator[T]:
    """The items that are not done yet; they have to come in the same order each time."""
    return each_of(_loops.each(items, name=name, flush=flush))


def files(folder: str | Path, pattern: str = "**/*", *, name: str = "files", flush: bool = False) -> Iterator[Path]:
    """The files of a folder by name, after the last one that is done; one added before that is not seen.

    Raises:
        OSError: there is no such folder, or no longer: nothing would look like everything being done.
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
        Conflict: what was read before is no longer there.
        InvalidInput: an encoding whose lines do not end with the byte 10, as UTF-16; nothing was read.
    """
    return each_of(_loops.lines(path, encoding=encoding, name=name, flush=flush))


def run_script(
    connection: Any,
    script: str | Sequence[str],
    *,
    cursor: Literal["target", "whole", "journal"] = "target",
    name: str = "script",
) -> int:
    """Execute the statements that are not done yet; how many that were.

    The connection is a DB-API one, blocking or async, or apsw's; outside a transaction, and this step's alone. The
    script has no BEGIN and no COMMIT of its own.

    Raises:
        InvalidInput: the connection is inside a transaction, the script begins or ends one, or there is no such
            cursor; nothing was executed.
        Exception: what a statement raised; those before it are done, but for cursor="whole".
    """
    return here(_loops.run_script(connection, script, cursor=cursor, name=name))
