"""Files, listening sockets and pipes that go on where the former process left them.

A mark says how far you have come for certain. Of a file that is written, what stands after the last mark was cut
off in the middle, and is removed when the next process takes the file up; of one that is read, reading goes on at
the mark. Without marks a file goes on at the byte where its last process was.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

from perdure._model import Verdict
from perdure._runtime.units import Unit
from perdure.errors import InvalidInput, UnitEnded

_CHUNK = 1 << 20


class KeptDescriptor(Unit):
    """What files, listeners and pipes have in common."""

    _fds: tuple[int, ...] = ()

    async def attach(self, *, take: bool = False) -> dict[str, Any]:
        """Get the descriptors.

        Raises:
            UnitHeld: a living process has them; `take` ends it.
        """
        reply = await self.ask("give", take=take)
        self.close()
        self._fds = reply.fds
        facts: dict[str, Any] = reply.args["facts"]
        return facts

    def close(self) -> None:
        """Close it in this process; the keeper still has it."""
        fds, self._fds = self._fds, ()
        for fd in fds:
            os.close(fd)

    def _fd(self, number: int = 0) -> int:
        if not self._fds:
            raise UnitEnded(self.name, "it was closed in this process")
        return self._fds[number]


class KeptFile(KeptDescriptor):
    """A file and the place in it: bytes, without a buffer, so that nothing is lost in one."""

    path: str
    mode: str
    _marked: tuple[int, int] = (0, 0)  # a length, and the checksum of so much from the beginning

    @property
    def is_written(self) -> bool:
        return self.mode != "rb"

    def fileno(self) -> int:
        return self._fd()

    def read(self, size: int = -1) -> bytes:
        """So many bytes from here on, fewer only at the end."""
        parts: list[bytes] = []
        while size and (piece := os.read(self._fd(), _CHUNK if size < 0 else min(size, _CHUNK))):
            parts.append(piece)
            size -= len(piece) if size > 0 else 0
        return b"".join(parts)

    def lines(self) -> Iterator[bytes]:
        """Line by line from here on; the file's place is after the line that was given last."""
        rest = b""
        while piece := os.read(self._fd(), 1 << 16):
            rest += piece
            while (end := rest.find(b"\n")) >= 0:
                line, rest = rest[: end + 1], rest[end + 1 :]
                self.seek(-len(rest), os.SEEK_CUR)
                yield line
                self.seek(len(rest), os.SEEK_CUR)
        if rest:
            yield rest

    def write(self, data: bytes) -> int:  # type: ignore[override]  # what files have always called it
        """All of it."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd(), view) :]
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return os.lseek(self._fd(), offset, whence)

    def tell(self) -> int:
        return os.lseek(self._fd(), 0, os.SEEK_CUR)

    async def mark(self) -> None:
        """So far for certain: on disk when this returns, with what was written."""
        fd = self._fd()
        mark: dict[str, int] = {"position": self.tell()}
        if self.is_written:
            os.fsync(fd)
            length = os.fstat(fd).st_size
            self._marked = (length, self._checksum(*self._marked, length))
            mark |= {"length": length, "crc": self._marked[1]}
        await Unit.write(self, "mark", mark=mark)

    def _checksum(self, start: int, crc: int, end: int) -> int:
        """Of all up to `end`, from that of all up to `start`; read by another descriptor if ours cannot."""
        if end < start:
            start, crc = 0, 0
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while start < end:
                piece = os.pread(fd, min(_CHUNK, end - start), start)
                if not piece:
                    break
                crc, start = crc32(piece, crc), start + len(piece)
        finally:
            os.close(fd)
        return crc

    # ── coming back ─────────────────────────────────────────────────────────────────────────────

    async def take_up(self, facts: dict[str, Any], *, was_made: bool, is_rebuilt: bool) -> None:
        """Go on where the last process was for certain; or say that this file is another one."""
        problem = self._replaced(facts)
        mark = facts.get("mark")
        if problem is None and mark is not None and "length" in mark:
            problem = self._damaged(mark["length"], mark["crc"])
        if problem is not None:
            self.close()
            self._judge("lost", problem, do_not_assume=("that it holds what you wrote or read",))
            return
        since = self._go_on(mark)
        if is_rebuilt:
            differs = () if mark else ("its place: it was never marked, and is at the beginning",)
            self._judge("rebuilt", "it was opened again", differs=differs, since_you_left=since)
        elif not was_made:
            self._judge("kept", "the same open file", same=("place", "contents"), since_you_left=since)

    def _go_on(self, mark: dict[str, int] | None) -> tuple[str, ...]:
        if mark is None:
            return ()
        if not self.is_written:
            self.seek(mark["position"])
            return ()
        length, fd = mark["length"], self._fd()
        self._marked = (length, mark["crc"])
        torn = os.fstat(fd).st_size - length
        if torn > 0:
            os.ftruncate(fd, length)
            os.fsync(fd)
        self.seek(mark["position"])
        return (f"{torn:,} bytes after the last mark were cut off",) if torn > 0 else ()

    def _replaced(self, facts: dict[str, Any]) -> str | None:
        try:
            about = os.stat(self.path)
        except OSError as error:
            return f"{self.path} cannot be found: {error.strerror}"
        ours = os.fstat(self._fd())
        if [about.st_dev, about.st_ino] != [ours.st_dev, ours.st_ino] or facts.get("file") not in (
            None,
            [ours.st_dev, ours.st_ino],
        ):
            return f"{self.path} is another file now"
        return None

    def _damaged(self, length: int, crc: int) -> str | None:
        size = os.fstat(self._fd()).st_size
        if size < length:
            return f"{self.path} has {size:,} bytes; {length:,} were marked as written"
        if self._checksum(0, 0, length) != crc:
            return f"{self.path} was changed: its first {length:,} bytes are not those that were marked"
        return None

    def _judge(self, level: Any, reason: str, **parts: Any) -> None:
        self.verdict = Verdict(level, reason, **parts)
        self.level = level


class KeptListener(KeptDescriptor):
    """A listening socket; connections that are made while nobody is there wait in its queue."""

    @property
    def port(self) -> int:
        return int(self.record.facts["port"])

    @property
    def host(self) -> str:
        return str(self.record.recipe["host"])

    def socket(self) -> socket.socket:
        """For `asyncio.start_server(sock=…)` and the like. Closing it leaves the kept one open."""
        return socket.socket(fileno=os.dup(self._fd()))


class _Marked(KeptDescriptor):
    """What has no place of its own: how far its reader or writer has come, they say themselves."""

    marked: Any = None  # what was marked last, by whichever process

    async def attach(self, *, take: bool = False) -> dict[str, Any]:
        facts = await super().attach(take=take)
        self.marked = (facts.get("mark") or {}).get("value")
        return facts

    async def mark(self, value: Any) -> None:
        """So far for certain: on disk when this returns, and given to the next process as `marked`."""
        await Unit.write(self, "mark", mark={"value": value})
        self.marked = value


class KeptSocket(_Marked):
    """A connection; what came while no process was there waits in it."""

    def socket(self) -> socket.socket:
        """To read from and write to. Closing it leaves the kept one open."""
        return socket.socket(fileno=os.dup(self._fd()))


class KeptPipe(_Marked):
    """A pipe; what was written and not read stays in it."""

    def reader(self) -> int:
        """A descriptor to read from, the caller's to close."""
        return os.dup(self._fd(0))

    def writer(self) -> int:
        return os.dup(self._fd(1))


def absolute(name: str | Path) -> str:
    return str(Path(name).absolute())


_MODES = {"r": "rb", "w": "wb", "a": "ab", "x": "xb"}


def mode_of(mode: str) -> str:
    """A mode in its one spelling.

    Raises:
        InvalidInput: it is none, or for text.
    """
    letters = sorted(mode)
    if "b" not in letters or len(set(letters)) != len(letters):
        raise InvalidInput(f"mode {mode!r} is not for bytes", do="write 'rb', 'wb', 'ab' or the like")
    kind = "".join(letter for letter in letters if letter not in "b+")
    if kind not in _MODES:
        raise InvalidInput(f"{mode!r} is no mode of a file")
    return f"{kind}+b" if "+" in letters else f"{kind}b"
