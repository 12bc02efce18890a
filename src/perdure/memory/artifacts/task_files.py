"""Files of a task, inside one folder and nowhere else.

A path is walked name by name from the folder's own descriptor, and no step follows a link. So the opened file is the
one that was checked, even if another process puts a link there meanwhile. Only plain files are accepted: a device or a
pipe could hang or lie.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from perdure._ground.ids import new_uid
from perdure.errors import PathRefused

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK = 1 << 20
_MOST_STEM = 150  # bytes; a name has 255
# Folders that belong to others, also inside ours.
_NOT_OURS = {".git", ".perdure"}


class Artifact(NamedTuple):
    path: str  # from the folder, with /
    sha256: str
    size: int


def check_path(path: str | Path) -> tuple[str, ...]:
    """The names on the way to a file.

    Raises:
        PathRefused: it is absolute, leads up or out, or has a name that perdure does not use for files.
    """
    text = os.fspath(path)
    if not text:
        raise PathRefused(str(path), "it is empty")
    if any(not c.isprintable() for c in text) or "\\" in text:
        raise PathRefused(text, "it has characters that a plain path cannot have")
    if text.startswith("/"):
        raise PathRefused(text, "it is absolute")
    names = tuple(name for name in text.split("/") if name not in ("", "."))
    if ".." in names:
        raise PathRefused(text, "it leads up")
    if not names or text.endswith("/"):
        raise PathRefused(text, "it names no file")
    if foreign := _NOT_OURS & set(names):
        raise PathRefused(text, f"{min(foreign)} belongs to others")
    return names


def examine(base: Path, path: str | Path) -> Artifact:
    """The present state of the file: its path inside `base`, its hash and its size.

    Raises:
        PathRefused: it is not there, not inside, behind a link, or not a plain file.
    """
    names = check_path(path)
    with _parent(base, names) as folder, _opened(folder, names) as file:
        digest, size = hashlib.sha256(), 0
        while block := os.read(file, _BLOCK):
            digest.update(block)
            size += len(block)
    return Artifact("/".join(names), digest.hexdigest(), size)


@contextmanager
def opened(base: Path, path: str) -> Iterator[int]:
    """The descriptor of the file, found in the same way; it is closed when the block ends.

    Raises:
        PathRefused: it is not there, not inside, behind a link, or not a plain file.
    """
    names = check_path(path)
    with _parent(base, names) as folder, _opened(folder, names) as file:
        yield file


def read(base: Path, path: str) -> bytes:
    """The bytes of the file, found in the same way."""
    names = check_path(path)
    with _parent(base, names) as folder, _opened(folder, names) as file:
        return b"".join(iter(lambda: os.read(file, _BLOCK), b""))


def is_executable(base: Path, path: str) -> bool:
    names = check_path(path)
    with _parent(base, names) as folder, _opened(folder, names) as file:
        return bool(os.fstat(file).st_mode & stat.S_IXUSR)


def write(base: Path, path: str | Path, data: bytes) -> Artifact:
    """Put a whole file in its place: readers find the old one or the new one. On disk when this returns.

    Raises:
        PathRefused: it would lie outside, or replace something that is not a plain file.
    """
    names = check_path(path)
    base.mkdir(parents=True, exist_ok=True)
    with _parent(base, names, make=True) as folder:
        _refuse_other_kinds(folder, names)
        fresh, file = _fresh(folder, names[-1])
        try:
            with os.fdopen(file, "wb") as out:
                out.truncate()
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
                os.replace(fresh, names[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=folder)
            raise
        os.fsync(folder)
    return Artifact("/".join(names), hashlib.sha256(data).hexdigest(), len(data))


def _fresh(folder: int, name: str) -> tuple[str, int]:
    """Create a private file beside the one to be replaced; returns its descriptor and its name.

    Its fixed name lets a new writer replace the leftover of a killed one. If another writer is using it, or it is not a
    file of ours, a unique name is used.
    """
    stem = os.fsdecode(os.fsencode(name)[:_MOST_STEM])
    usual = f".{stem}.new"
    with suppress(OSError):
        file = os.open(
            usual, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=folder
        )
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine, there = os.fstat(file), os.stat(usual, dir_fd=folder, follow_symlinks=False)
            # A link can lead anywhere. A file that has just appeared there was put there by another writer.
            if stat.S_ISREG(mine.st_mode) and mine.st_nlink == 1 and os.path.samestat(mine, there):
                return usual, file
            raise BlockingIOError
        except BaseException:
            os.close(file)
            raise
    own = f".{stem}.{new_uid(0)}.new"
    return own, os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)


@contextmanager
def _parent(base: Path, names: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """The folder of the file, opened; each name on the way is looked up in the one before it."""
    text = "/".join(names)
    try:
        folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise PathRefused(text, f"the folder {base} cannot be opened: {error.strerror}") from None
    try:
        for name in names[:-1]:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
            try:
                inner = os.open(name, _FOLDER, dir_fd=folder)
            except OSError as error:
                raise PathRefused(text, f"{name!r} is not a folder of its own: {error.strerror}") from None
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


@contextmanager
def _opened(folder: int, names: tuple[str, ...]) -> Iterator[int]:
    text = "/".join(names)
    _refuse_other_kinds(folder, names)  # opening a device can have an effect by itself
    try:
        file = os.open(names[-1], _FILE, dir_fd=folder)
    except OSError as error:
        raise PathRefused(text, f"it cannot be opened: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise PathRefused(text, "it is not a plain file")
        yield file
    finally:
        os.close(file)


def _refuse_other_kinds(folder: int, names: tuple[str, ...]) -> None:
    try:
        mode = os.stat(names[-1], dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        raise PathRefused("/".join(names), "it is a link")
    if not stat.S_ISREG(mode):
        raise PathRefused("/".join(names), "it is not a plain file")
