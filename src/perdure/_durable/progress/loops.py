"""Loops for long steps. After a crash each continues where it was interrupted.

Inside a step:

    async for row in loops.lines("import.csv"): ...        # at the next line, by its byte
    async for page in loops.each(range(30)): ...           # at the next item
    async with loops.appending("out.jsonl") as out: ...    # the file is cut back to what is known to be complete
    await loops.run_script(connection, sql)                # at the next statement

An item counts as done when the loop asks for the next one. So after a crash the item under way is repeated. Items
before it are not repeated if they took 1 s or longer; of shorter ones, the last few can be (marks.py says how many).
With `flush=True` each item is on disk before the next one begins. Two loops are exact: `appending`, because the file
itself shows how much of it is complete, and `run_script`, because statement and cursor are committed together.

The loops of a step store their places under their names, beside its cursor. A second loop of the same kind in one step
needs another name, and is refused without one. Without a task they are plain loops.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar, overload
from zlib import crc32

from perdure._durable.progress.marks import WRITTEN_EVERY, Place
from perdure._durable.progress.sql_scripts import run_script
from perdure.errors import Conflict, InvalidInput

__all__ = ["appending", "batches", "blocks", "each", "files", "lines", "run_script"]

T = TypeVar("T")

_READ = 1 << 20
# The end of what was read is remembered, to notice when the file has been replaced.
_TAIL = 64


# ── items, batches, files ────────────────────────────────────────────────────────────────────────


async def each(items: Iterable[T], *, name: str = "each", flush: bool = False) -> AsyncIterator[T]:
    """The items that are not done yet. They must be in the same order each time."""
    place = Place(name, flush)
    done = place.found or 0
    total = len(items) if isinstance(items, Sequence) else None
    for item in islice(items, done, None):
        yield item
        done += 1
        await place.mark(done, done, total)


async def batches(
    items: Iterable[T], size: int, *, name: str = "batches", flush: bool = False
) -> AsyncIterator[list[T]]:
    """The items that are not done yet, `size` at a time."""
    _refuse_empty(size)
    place = Place(name, flush)
    done = place.found or 0
    total = len(items) if isinstance(items, Sequence) else None
    rest = islice(items, done, None)
    while batch := list(islice(rest, size)):
        yield batch
        done += len(batch)
        await place.mark(done, done, total)


async def files(
    folder: str | Path, pattern: str = "**/*", *, name: str = "files", flush: bool = False
) -> AsyncIterator[Path]:
    """The files of a folder by name, after the last one that is done. A file added before that one is not seen.

    Raises:
        OSError: the folder does not exist; an empty loop would look as if every file were done.
    """
    place = Place(name, flush)
    found = place.found or {"after": None, "done": 0}
    after = None if found["after"] is None else os.fsdecode(found["after"])
    paths = await asyncio.to_thread(_files_in, Path(folder), pattern)
    named = sorted((path.relative_to(folder).as_posix(), path) for path in paths)
    left = [pair for pair in named if after is None or pair[0] > after]
    done = int(found["done"])
    total = done + len(left)
    for relative, path in left:
        yield path
        done += 1
        await place.mark({"after": _as_stored(relative), "done": done}, done, total)


def _files_in(folder: Path, pattern: str) -> list[Path]:
    with os.scandir(folder):
        return [path for path in folder.glob(pattern) if path.is_file()]


def _as_stored(name: str) -> str | bytes:
    """A file's name; as bytes if it is not valid text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name)
    return name


def _refuse_empty(size: int) -> None:
    if size < 1:
        raise InvalidInput(f"the size is {size}; it must be at least 1")


# ── reading a file ───────────────────────────────────────────────────────────────────────────────


@overload
def lines(path: str | Path, *, encoding: str = ..., name: str = ..., flush: bool = ...) -> AsyncIterator[str]: ...
@overload
def lines(path: str | Path, *, encoding: None, name: str = ..., flush: bool = ...) -> AsyncIterator[bytes]: ...
async def lines(
    path: str | Path, *, encoding: str | None = "utf-8", name: str = "lines", flush: bool = False
) -> AsyncIterator[Any]:
    """The lines of a file with their ends, from the byte after the last one that is done.

    Raises:
        Conflict: a part that was already read has changed.
        InvalidInput: an encoding whose lines do not end with the byte 10, such as UTF-16; nothing was read.
    """
    if encoding is not None and not _ends_lines_with_a_byte(encoding):
        raise InvalidInput(
            f"lines of {encoding} do not end with the byte 10",
            kept="nothing was read",
            do="convert the file to UTF-8, or read it whole and use loops.each for its lines",
        )
    async for line in _parts(Path(path), name, flush, lambda file: file.readlines(_READ)):
        yield line if encoding is None else line.decode(encoding)


def _ends_lines_with_a_byte(encoding: str) -> bool:
    return "a\n".encode(encoding).endswith(b"a\n")  # a byte order mark may precede it


async def blocks(
    path: str | Path, size: int = _READ, *, name: str = "blocks", flush: bool = False
) -> AsyncIterator[bytes]:
    """A file in blocks, from the byte after the last one that is done.

    Raises:
        Conflict: a part that was already read has changed.
    """
    _refuse_empty(size)

    def read(file: IO[bytes]) -> list[bytes]:
        block = file.read(size)
        return [block] if block else []

    async for block in _parts(Path(path), name, flush, read):
        yield block


async def _parts(path: Path, name: str, flush: bool, read: Callable[[IO[bytes]], list[bytes]]) -> AsyncIterator[bytes]:
    place = Place(name, flush)
    with await asyncio.to_thread(path.open, "rb") as file:
        at = _seek(file, path, place.found)
        total = os.fstat(file.fileno()).st_size
        while found := await asyncio.to_thread(read, file):
            for part in found:
                yield part
                at += len(part)
                tail = part[-_TAIL:]
                await place.mark({"at": at, "tail": len(tail), "crc": crc32(tail)}, at, max(at, total))


def _seek(file: IO[bytes], path: Path, found: dict[str, int] | None) -> int:
    if found is None:
        return 0
    at = found["at"]
    file.seek(max(0, at - found["tail"]))
    if crc32(file.read(found["tail"])) != found["crc"] or file.tell() != at:
        raise Conflict(
            f"{path} is not the file that was read up to byte {at:,}",
            kept="the cursor; nothing was read",
            do="put the file back, or start a new task for the new one",
        )
    return at


# ── writing a file ───────────────────────────────────────────────────────────────────────────────


class appending:
    """A file that only this step appends to. Each `write` is in it once, whatever crashes.

    `done` is how many writes of earlier attempts are in the file. The loop starts there:

        async with appending(path) as out:
            for row in rows[out.done:]:
                await out.write(row)

    Writes are gathered, synced, and then marked with the file's length and checksum. Bytes beyond the marked length
    were left by a crash: they are cut off, and their writes are repeated.

    Raises:
        Conflict: a part that was already written has changed.
    """

    done: int

    def __init__(self, path: str | Path, *, name: str = "appending", flush: bool = False) -> None:
        self._path, self._name, self._flush = Path(path), name, flush
        self.done = 0
        self._marked = 0.0
        self._gathered = io.BytesIO()

    async def __aenter__(self) -> appending:
        self._place = Place(self._name, flush=False)
        self._pace = asyncio.get_running_loop().time
        await asyncio.to_thread(self._open)
        if self._place.found is None:
            # The start is recorded before the first byte is written, so that a torn first write is cut off too.
            await self._mark()
        return self

    def _open(self) -> None:
        found = self._place.found
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        size = os.fstat(self._file).st_size
        if found is None:
            self._length, self._crc = size, _checksum(self._file, size)
            _sync_folder(self._path.parent)
            return
        self._length, self._crc, self.done = found["length"], found["crc"], found["done"]
        if size < self._length or _checksum(self._file, self._length) != self._crc:
            os.close(self._file)
            raise Conflict(
                f"{self._path} does not begin with the {self._length:,} bytes that were written to it",
                kept="the file as it is, and the cursor",
                do="put the file back, or start a new task",
            )
        os.ftruncate(self._file, self._length)
        os.lseek(self._file, 0, os.SEEK_END)

    async def write(self, data: bytes | str) -> None:
        """Append. The data is on disk and marked soon; with flush=True, when this returns."""
        self._gathered.write(data.encode() if isinstance(data, str) else data)
        self.done += 1
        if self._flush or self._gathered.tell() >= _READ or self._pace() - self._marked >= WRITTEN_EVERY:
            await self.flush()

    async def flush(self) -> None:
        """Wait until everything written is on disk and marked."""
        data = self._gathered.getvalue()
        self._gathered = io.BytesIO()
        if data:
            await asyncio.to_thread(self._append, data)
            self._length += len(data)
            self._crc = crc32(data, self._crc)
            await self._mark()

    def _append(self, data: bytes) -> None:
        os.lseek(self._file, self._length, os.SEEK_SET)
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        os.fdatasync(self._file)

    async def _mark(self) -> None:
        place = {"length": self._length, "crc": self._crc, "done": self.done}
        await self._place.mark(place, self.done, flush=True)
        self._marked = self._pace()

    async def __aexit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                await self.flush()
        finally:
            os.close(self._file)


def _sync_folder(folder: Path) -> None:
    # fdatasync keeps the bytes of a new file; syncing the folder keeps its name.
    opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _checksum(file: int, length: int) -> int:
    os.lseek(file, 0, os.SEEK_SET)
    crc, left = 0, length
    while left and (part := os.read(file, min(left, _READ))):
        crc, left = crc32(part, crc), left - len(part)
    return crc
