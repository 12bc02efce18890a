"""Find the contents of a folder that are new since its last cut, and read them so that they match their recorded facts.

A file that looks as it did (inode, size, both times) is not read again, unless it was written so shortly before the
last cut that its times could not show another write. A file that changes while it is read is read again.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import msgspec

from perdure._runtime.workspace import safe_paths as beneath
from perdure._runtime.workspace.folder_walk import Found, Walked
from perdure._runtime.workspace.objects import Blob, oid_of
from perdure._runtime.workspace.sealer import PIECE, Sealer, sealed_size

# Up to here a file is read into memory; a larger one is copied aside first, so that it cannot change in between.
_IN_MEMORY = 32 * 1024 * 1024
# A file written this shortly before it was looked at may be written again without its times showing it.
_TICK_NS = 50_000_000
_COARSE_TICK_NS = 2_000_000_000  # where times are whole seconds
_TRIES = 3


class Seen(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A thing as it was at the last cut."""

    path: bytes
    kind: str
    mode: int
    size: int
    ino: int
    mtime_ns: int
    ctime_ns: int
    oid: str
    is_settled: bool  # its times would show another write


class Last(msgspec.Struct, frozen=True):
    """The last cut of a folder."""

    cut: str
    files: str
    seen: list[Seen]
    manifest: bytes
    key: str = ""  # that it is sealed with


class Contents:
    """The changes since the last cut. `walked` is corrected for files that changed since they were examined."""

    def __init__(
        self, root: Path, home: Path, walked: Walked, last: Iterable[Seen], sealer: Sealer | None = None
    ) -> None:
        self._root, self._home, self._walked, self._sealer = os.fsencode(root), home, walked, sealer
        known = {seen.path: seen for seen in last}
        found = walked.found
        self._oids = {path: seen.oid for path, seen in known.items() if path in found}
        self._known = known
        self.removed = [path for path, seen in known.items() if seen.oid and _is_gone(found.get(path))]
        self.changes: list[tuple[bytes, str, str]] = []
        changed = [thing for thing in found.values() if thing.kind != "folder" and self._has_changed(thing)]
        self._changed = [thing for thing in changed if self._may_be_read(thing)]
        self.new = 0

    @property
    def differ(self) -> bool:
        return bool(self._changed or self.removed)

    def _has_changed(self, found: Found) -> bool:
        seen = self._known.get(found.path)
        if seen is None or seen.kind != found.kind or git_mode(seen) != git_mode(found):
            return True
        if seen.size != found.size:
            return True
        looks_the_same = (seen.ino, seen.mtime_ns, seen.ctime_ns) == (found.ino, found.mtime_ns, found.ctime_ns)
        if looks_the_same and seen.is_settled:
            return False
        try:
            return oid_at(self._root, found, self._sealer) != seen.oid
        except OSError:
            return True

    def _may_be_read(self, found: Found) -> bool:
        if found.kind == "link" or os.access(os.path.join(self._root, found.path), os.R_OK):
            return True
        self._leave_out(found, "it may not be read")
        return False

    def blobs(self) -> Iterator[Blob]:
        """Each new content, noted in `changes` as it is read."""
        for found in self._changed:
            try:
                blob = self._read(found)
            except FileNotFoundError:
                self._leave_out(found, None)
                continue
            except PermissionError:
                self._leave_out(found, "it may not be read")
                continue
            before = self._oids.get(found.path)
            self._oids[found.path] = blob.oid
            self.changes.append((found.path, git_mode(self._walked.found[found.path]), blob.oid))
            if blob.oid != before:
                self.new += 1
                yield blob
            if isinstance(blob.source, Path):
                blob.source.unlink()

    def seen(self, began: int) -> list[Seen]:
        """The state of every file, for comparison at the next cut."""
        return [
            Seen(*found, self._oids.get(path, "") if found.kind != "folder" else "", _is_settled(found, began))
            for path, found in self._walked.found.items()
        ]

    def _leave_out(self, found: Found, why: str | None) -> None:
        del self._walked.found[found.path]
        if why is not None:
            self._walked.left_out.append((found.path, why))
        if self._oids.pop(found.path, None):
            self.removed.append(found.path)

    def _read(self, found: Found) -> Blob:
        if found.kind == "link":
            target = _as_stored(beneath.read_link(self._root, found.path), self._sealer)
            return Blob(oid_of(len(target), [target]), len(target), target)
        before, source, size, after = self._take(found.path)
        for _ in range(_TRIES):
            if _times(before) == _times(after):
                break
            before, source, size, after = self._take(found.path)
        now = Found(found.path, "file", stat.S_IMODE(after.st_mode), size, after.st_ino, *_times(after)[1:])
        self._walked.found[found.path] = now
        stored = len(source) if isinstance(source, bytes) else source.stat().st_size
        return Blob(oid_of(stored, _parts(source)), stored, source)

    def _take(self, path: bytes) -> tuple[os.stat_result, bytes | Path, int, os.stat_result]:
        """The contents as they are stored, and their size in clear; how the file looked before and after."""
        with beneath.open_file(self._root, path) as file:
            before = os.fstat(file.fileno())
            source: bytes | Path
            if before.st_size <= _IN_MEMORY:
                data = file.read()
                source, size = _as_stored(data, self._sealer), len(data)
            else:
                source = self._home / f"aside-{secrets.token_hex(8)}"
                size = self._copy_aside(file, before.st_size, source)
            return before, source, size, os.fstat(file.fileno())

    def _copy_aside(self, file: IO[bytes], size: int, aside: Path) -> int:
        """As much of the file as it had when it was looked at; never in clear where there is a key."""
        parts = _pieces(file, size)
        with aside.open("wb") as out:
            for part in self._sealer.pieces(parts) if self._sealer else parts:
                out.write(part)
        return file.tell()


def oid_at(root: Path | bytes, found: Found, sealer: Sealer | None = None) -> str:
    """The name of a thing's contents as they are now."""
    if found.kind == "link":
        target = _as_stored(beneath.read_link(os.fsencode(root), found.path), sealer)
        return oid_of(len(target), [target])
    with beneath.open_file(os.fsencode(root), found.path) as file:
        if sealer is None:
            return oid_of(found.size, _pieces(file, found.size))
        if found.size <= _IN_MEMORY:
            stored = sealer.whole(file.read())
            return oid_of(len(stored), [stored])
        return oid_of(sealed_size(found.size), sealer.pieces(_pieces(file, found.size)))


def _as_stored(data: bytes, sealer: Sealer | None) -> bytes:
    return sealer.whole(data) if sealer else data


def _pieces(file: IO[bytes], size: int) -> Iterator[bytes]:
    """So many bytes of a file, piece by piece. It may have shrunk since: what is missing is not made up."""
    while size > 0 and (part := file.read(min(size, PIECE))):
        size -= len(part)
        yield part


def git_mode(found: Found | Seen) -> str:
    if found.kind == "link":
        return "120000"
    return "100755" if found.mode & 0o100 else "100644"


def _is_gone(found: Found | None) -> bool:
    return found is None or found.kind == "folder"


def _is_settled(found: Found, began: int) -> bool:
    tick = _COARSE_TICK_NS if found.mtime_ns % 1_000_000_000 == 0 else _TICK_NS
    return max(found.mtime_ns, found.ctime_ns) < began - tick


def _times(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _parts(source: bytes | Path) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as file:
        yield from iter(lambda: file.read(1 << 20), b"")
