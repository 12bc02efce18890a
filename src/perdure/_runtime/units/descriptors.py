"""Files, listening sockets and pipes that continue where the former process left them.

A mark records how far the work on a file is certain. When the next process opens a file for writing, the bytes after
the last mark are removed, because they may be incomplete. A file that is read continues at the mark. Without marks a
file continues at the byte where its last process was.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from perdure._model import Level, Verdict
from perdure._runtime.keeper_client import Record
from perdure._runtime.units.unit import Unit
from perdure.errors import InvalidInput, UnitEnded

_CHUNK = 1 << 20
# Bytes at the beginning and at the end that are compared, of a file that is read without marks.
_SAMPLE = 32 << 20
_RELEASE = "rt.release(name) lets go of it; opened after that, it is taken as it stands"


class KeptDescriptor(Unit):
    """The common base of files, listeners and pipes."""

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
    level: Level
    verdict: Verdict
    _marked: tuple[int, int] = (0, 0)  # a length, and the checksum of that many bytes from the beginning

    @property
    def is_written(self) -> bool:
        return self.mode != "rb"

    def fileno(self) -> int:
        return self._fd()

    def read(self, size: int = -1) -> bytes:
        """Read this many bytes; fewer only at the end of the file."""
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
        """Mark this position as certain. The mark and all bytes written are on disk when this returns."""
        fd = self._fd()
        mark: dict[str, int] = {"position": self.tell()}
        if self.is_written:
            os.fsync(fd)
        length = os.fstat(fd).st_size if self.is_written else mark["position"]
        self._marked = (length, self._checksum(*self._marked, length))
        if self.is_written:
            mark |= {"length": length, "crc": self._marked[1]}
        else:
            mark["behind"] = self._marked[1]
        await Unit.write(self, "mark", mark=mark)

    def _checksum(self, start: int, crc: int, end: int) -> int:
        """Of all up to `end`, from that of all up to `start`; read by another descriptor if ours cannot."""
        if end < start:
            start, crc = 0, 0
        return _checksum(self.path, start, crc, end)

    # ── coming back ─────────────────────────────────────────────────────────────────────────────

    async def take_up(self, facts: dict[str, Any], *, was_made: bool, is_rebuilt: bool) -> None:
        """Continue at the last certain position, or report that this is another file."""
        mark = facts.get("mark")
        ours = os.fstat(self._fd())
        problem = damage(self.path, {"file": [ours.st_dev, ours.st_ino], **facts})
        if problem is None and not was_made and not is_rebuilt:
            problem = changed_unmarked(self.path, facts, ours, is_written=self.is_written)
        if problem is not None:
            self.close()
            self._judge("lost", problem, do_not_assume=("that it holds what you wrote or read",), options=(_RELEASE,))
            return
        since = self._go_on(mark)
        if is_rebuilt:
            differs = () if mark else ("its place: it was never marked, and is at the beginning",)
            how = (
                "it was released, and opened again" if self.record.recipe.get("was_released") else "it was opened again"
            )
            self._judge("rebuilt", how, differs=differs, since_you_left=since)
        elif not was_made:
            self._judge("kept", "the same open file", same=("place", "contents"), since_you_left=since)
            if mark is None:
                self._judge_unmarked(facts, ours)
        if mark is None and not self.is_written:
            with suppress(InvalidInput):  # an older keeper does not keep it
                await self.ask("basis", basis=_basis(self.path, ours))

    def _judge_unmarked(self, facts: dict[str, Any], ours: os.stat_result) -> None:
        """Kept, and no more said of its contents than was looked at."""
        basis = facts.get("basis") or {}
        added = ours.st_size - (basis.get("length", ours.st_size) if not self.is_written else ours.st_size)
        since = (f"{added:,} bytes were added to it",) if added > 0 else ()
        if (facts.get("left") == _stand(ours) and not facts.get("is_fresh")) or (
            basis and self.tell() <= basis["length"]
        ):
            self._judge("kept", "the same open file", same=("place", "contents"), since_you_left=since)
        else:
            unknown = (
                "that no other program has changed it: it was never marked, and it changed as its last process ended"
            )
            self._judge("kept", "the same open file", same=("place",), since_you_left=since, do_not_assume=(unknown,))

    def _go_on(self, mark: dict[str, int] | None) -> tuple[str, ...]:
        if mark is None:
            return ()
        if not self.is_written:
            self._marked = (mark["position"], mark["behind"]) if "behind" in mark else (0, 0)
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

    def _judge(self, level: Any, reason: str, **parts: Any) -> None:
        self.verdict = Verdict(level, reason, **parts)
        self.level = level


def damage(path: str, facts: Mapping[str, Any]) -> str | None:
    """Why the file at this path is not the one that was marked; None if it is."""
    try:
        about = os.stat(path)
        if facts.get("file") not in (None, [about.st_dev, about.st_ino]):
            return f"{path} is another file now"
        mark = facts.get("mark") or {}
        length, crc = (
            (mark["length"], mark["crc"]) if "length" in mark else (mark.get("position", 0), mark.get("behind"))
        )
        if about.st_size < length and crc is not None:
            return f"{path} has {about.st_size:,} bytes; {length:,} were marked"
        if crc is not None and _checksum(path, 0, 0, length) != crc:
            return f"{path} was changed: its first {length:,} bytes are not those that were marked"
    except OSError as error:
        return f"{path} cannot be found: {error.strerror}"
    return None


def changed_unmarked(path: str, facts: Mapping[str, Any], now: os.stat_result, *, is_written: bool) -> str | None:
    """Without a mark: how the file was changed since its last process ended, or, if the keeper missed that end, since
    that process opened it. None if it was not changed, or if that is unknown."""
    left, basis = facts.get("left"), facts.get("basis")
    if facts.get("mark") is not None:
        return None
    if not is_written and basis is not None:
        return _changed(path, basis, now)
    return None if left in (None, _stand(now)) else f"{path} was changed after its last process had ended"


def problem_of(record: Record) -> str | None:
    """Why the file that the keeper holds open is not the one that was read or written."""
    path, facts = record.recipe["path"], record.facts
    if (found := damage(path, facts)) is not None:
        return found
    return changed_unmarked(path, facts, os.stat(path), is_written=record.recipe["mode"] != "rb")


def _checksum(path: str, start: int, crc: int, end: int) -> int:
    """Of all up to `end`, from that of all up to `start`; by a descriptor of its own, as ours may not read."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while start < end and (piece := os.pread(fd, min(_CHUNK, end - start), start)):
            crc, start = crc32(piece, crc), start + len(piece)
    finally:
        os.close(fd)
    return crc


def _stand(about: os.stat_result) -> list[int]:
    return [about.st_size, about.st_mtime_ns]


def _basis(path: str, about: os.stat_result) -> dict[str, Any]:
    """A fingerprint of a file that is read: its length, and checksums of its beginning and end."""
    length = about.st_size
    return {"length": length, "ends": _ends(path, length), "ctime": about.st_ctime_ns}


def _ends(path: str, length: int) -> list[int]:
    return [_checksum(path, 0, 0, min(length, _SAMPLE)), _checksum(path, max(0, length - _SAMPLE), 0, length)]


def _changed(path: str, basis: Mapping[str, Any], about: os.stat_result) -> str | None:
    if about.st_ctime_ns == basis["ctime"]:
        return None
    if about.st_size < basis["length"]:
        return f"{path} has {about.st_size:,} bytes; it had {basis['length']:,} when its last process took it up"
    if _ends(path, basis["length"]) != basis["ends"]:
        return f"{path} was changed since its last process took it up"
    return None


class KeptListener(KeptDescriptor):
    """A listening socket. Connections made while no process accepts wait in its queue."""

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
    """A descriptor without a file position: its reader or writer says how far it has come."""

    marked: Any = None  # the last mark, of any process

    async def attach(self, *, take: bool = False) -> dict[str, Any]:
        facts = await super().attach(take=take)
        self.marked = (facts.get("mark") or {}).get("value")
        return facts

    async def mark(self, value: Any) -> None:
        """So far for certain: on disk when this returns, and given to the next process as `marked`."""
        await Unit.write(self, "mark", mark={"value": value})
        self.marked = value


class KeptSocket(_Marked):
    """A connection. Data that came while no process read it waits in it."""

    def socket(self) -> socket.socket:
        """To read from and write to. Closing it leaves the kept one open."""
        return socket.socket(fileno=os.dup(self._fd()))


class KeptPipe(_Marked):
    """A pipe. Data that was written and not read stays in it."""

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
        InvalidInput: it is not a mode, or a text mode.
    """
    letters = sorted(mode)
    if "b" not in letters or len(set(letters)) != len(letters):
        raise InvalidInput(f"mode {mode!r} is not for bytes", do="write 'rb', 'wb', 'ab' or the like")
    kind = "".join(letter for letter in letters if letter not in "b+")
    if kind not in _MODES:
        raise InvalidInput(f"{mode!r} is not a mode of a file")
    return f"{kind}+b" if "+" in letters else f"{kind}b"
