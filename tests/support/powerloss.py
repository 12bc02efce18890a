"""A disk that can lose power: what was not synced is lost, torn or kept, as the seed says.

SQLite writes through `Disk.vfs()` into memory, and every write, sync, truncation and removal is traced.
`Disk.cut(position, rng)` gives the files as a machine would find them that lost power at that place of
the trace: all that was synced, and of the rest any part in any order, in sectors of 512 bytes.

Locks and the shared-memory index are the real ones, on empty files beside; a machine that lost power
has neither.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512
_LOGS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
_numbers = itertools.count()

# ("write", file, offset, data), ("truncate", file, size), ("sync", file), ("sync folder",), ("delete", file) or
# ("mark", value)
Op = tuple[Any, ...]


class Disk:
    """The files of one folder, as the operating system shows them, and how they came to be so."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self._first = dict(files or {})
        self.files = {name: bytearray(data) for name, data in self._first.items()}
        self.trace: list[Op] = []

    def mark(self, value: object) -> None:
        """Note in the trace what was acknowledged up to here."""
        self.trace.append(("mark", value))

    def marks(self, position: int) -> list[Any]:
        """What had been acknowledged when power was lost at `position`."""
        return [op[1] for op in self.trace[:position] if op[0] == "mark"]

    @contextmanager
    def vfs(self) -> Iterator[str]:
        """The name of a VFS that reads and writes here."""
        vfs = _Vfs(f"powerloss-{os.getpid()}-{next(_numbers)}", self)
        try:
            yield vfs.name
        finally:
            vfs.unregister()

    def cut(self, position: int, rng: random.Random) -> dict[str, bytes]:
        """The files after a loss of power at `position` of the trace."""
        durable = {name: bytearray(data) for name, data in self._first.items()}
        unsynced: dict[str, list[Op]] = defaultdict(list)
        for op in self.trace[:position]:
            if op[0] == "mark":
                continue
            if op[0] == "sync folder":
                _settle_removals(durable, unsynced)
            elif op[0] == "sync":
                _apply(durable, unsynced.pop(op[1], []))
                durable.setdefault(op[1], bytearray())
            else:
                unsynced[op[1]].append(op)
        for ops in unsynced.values():
            _apply(durable, _survivors(ops, rng))
        return {name: bytes(data) for name, data in durable.items()}


def _settle_removals(durable: dict[str, bytearray], unsynced: dict[str, list[Op]]) -> None:
    """The folder itself was synced: what was removed from it does not come back."""
    for name, ops in unsynced.items():
        last = max((number for number, op in enumerate(ops) if op[0] == "delete"), default=None)
        if last is not None:
            del ops[: last + 1]
            durable.pop(name, None)


def _survivors(ops: list[Op], rng: random.Random) -> Iterator[Op]:
    """What is left of writes that were never synced; whole, in part, or nothing."""
    manner = rng.choice(("none", "all", "first", "some", "torn"))
    kept = rng.randrange(len(ops) + 1)
    for number, op in enumerate(ops):
        lucky = rng.random() < 0.5
        if manner == "all" or (manner == "first" and number < kept) or (manner == "some" and lucky):
            yield op
        elif manner == "torn" and op[0] == "write":
            yield from _sectors(op, rng)
        elif manner == "torn" and lucky:
            yield op


def _sectors(op: Op, rng: random.Random) -> Iterator[Op]:
    _, name, offset, data = op
    at = 0
    while at < len(data):
        end = min(at + SECTOR - (offset + at) % SECTOR, len(data))
        if rng.random() < 0.5:
            yield ("write", name, offset + at, data[at:end])
        at = end


def _apply(files: dict[str, bytearray], ops: Iterator[Op] | list[Op]) -> None:
    for op in ops:
        if op[0] == "delete":
            files.pop(op[1], None)
            continue
        content = files.setdefault(op[1], bytearray())
        if op[0] == "truncate":
            del content[op[2] :]
        else:
            _put(content, op[2], op[3])


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class _Vfs(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        self.name, self._disk = name, disk
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> Any:
        if name is None:  # a temporary file: gone with the process anyway
            return super().xOpen(name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        return _File(path, flags, self._disk)

    def xAccess(self, pathname: str, flags: int) -> bool:
        return Path(pathname).name in self._disk.files

    def xDelete(self, filename: str, syncdir: bool) -> None:
        name = Path(filename).name
        if self._disk.files.pop(name, None) is None:
            raise apsw.IOError(f"there is no {name}")
        self._disk.trace.append(("delete", name))
        if syncdir:
            self._disk.trace.append(("sync folder",))
        Path(filename).unlink(missing_ok=True)


class _File(apsw.VFSFile):
    """One open file: bytes in memory, locks and shared memory by the real file of that name."""

    def __init__(self, path: str, flags: list[int], disk: Disk) -> None:
        Path(path).touch()  # SQLite may open a log that was left behind without creating it
        super().__init__("", path, flags)
        self._name, self._disk = Path(path).name, disk
        # As SQLite does on Unix: the first sync of a new log syncs its folder too.
        self._syncs_folder = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _LOGS)
        disk.files.setdefault(self._name, bytearray())

    @property
    def _content(self) -> bytearray:
        return self._disk.files.setdefault(self._name, bytearray())

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self._content[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        data = bytes(data)
        _put(self._content, offset, data)
        self._disk.trace.append(("write", self._name, offset, data))

    def xTruncate(self, newsize: int) -> None:
        del self._content[newsize:]
        self._disk.trace.append(("truncate", self._name, newsize))

    def xSync(self, flags: int) -> None:
        self._disk.trace.append(("sync", self._name))
        if self._syncs_folder:
            self._disk.trace.append(("sync folder",))
            self._syncs_folder = False

    def xFileSize(self) -> int:
        return len(self._content)
