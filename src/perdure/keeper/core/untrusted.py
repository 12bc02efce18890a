"""Read and write files where a unit or another program may have put something else. Standard library only.

The keeper reads and writes its folders only through this module. It follows no link, reads only plain files of this
user, never blocks on a pipe or device, and reads no more than a bound. Anything else raises `Unfit`, an OSError that
affects one unit and never the keeper.

Only the last part of a path is checked. The folders above it are the keeper's own, and hidden from isolated units.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
# The keeper itself writes no larger file.
MOST_RECORD = 4 << 20
MOST_JOURNAL = 64 << 20


class Unfit(OSError):
    """The file at a path is not one that the keeper would have put there; the message says what it is."""


def open_file(path: str | Path, flags: int = os.O_RDONLY, mode: int = 0o600, *, is_descriptor: bool = False) -> int:
    """A descriptor of a plain file of this user. With O_TRUNC it is emptied once that is known. `is_descriptor`: the
    path is one in /proc, of a file that another process has open, and so a link by itself.

    Raises:
        Unfit: it is something else.
        OSError: it cannot be opened.
    """
    safe = _SAFE & ~os.O_NOFOLLOW if is_descriptor else _SAFE
    try:
        fd = os.open(path, (flags & ~os.O_TRUNC) | safe, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise Unfit(error.errno, "a link stands in place of a file") from None
        if error.errno in (errno.ENXIO, errno.EISDIR, errno.ENODEV):
            raise Unfit(error.errno, "it is not a plain file") from None
        raise
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise Unfit(errno.EINVAL, "it is not a plain file")
        if found.st_uid != os.geteuid():
            raise Unfit(errno.EPERM, "the file is another user's")
        if flags & os.O_TRUNC:
            os.ftruncate(fd, 0)
        os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read(path: str | Path, most: int) -> bytes:
    """All that is in a file.

    Raises:
        Unfit: it is not a plain file, or larger than `most`.
        OSError: it cannot be read.
    """
    fd = open_file(path)
    try:
        parts, left = [], most + 1
        while left > 0 and (part := os.read(fd, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(fd)
    if left <= 0:
        raise Unfit(errno.EFBIG, f"the file has more than {most:,} bytes")
    return b"".join(parts)


def read_text(path: str | Path, most: int) -> str:
    """The same as text; invalid bytes are replaced."""
    return read(path, most).decode(errors="replace")


def read_json(path: str | Path, most: int = MOST_RECORD) -> Any:
    """The value in a file.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
        OSError: as `read`.
    """
    return json_of(read(path, most))


def json_of(data: bytes | str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not JSON, nested too deeply, or has an invalid number.
    """
    try:
        return json.loads(data, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def write(path: Path, data: bytes, *, through_power_loss: bool = False) -> None:
    """Replace a file as a whole: by a new one, so that nothing is written through a link or into a pipe."""
    fresh = path.with_name(f"{path.name}.new")
    remove(fresh)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if through_power_loss:
            os.fsync(fd)
    finally:
        os.close(fd)
    try:
        fresh.replace(path)
    except IsADirectoryError:
        raise Unfit(errno.EISDIR, "a folder stands in place of a file") from None


def create(path: Path, data: bytes) -> bool:
    """Make a file; False when something has its name already."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o600)
    except FileExistsError:
        return False
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
    return True


def remove(path: Path) -> None:
    """Remove a file, or a link, if one is there."""
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
    except (IsADirectoryError, PermissionError):
        if path.is_dir() and not path.is_symlink():
            raise Unfit(errno.EISDIR, "a folder stands in place of a file") from None
        raise


def make_folder(path: Path) -> None:
    """Have a folder there that is one, and this user's.

    Raises:
        Unfit: something else has its name.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700, parents=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise Unfit(errno.ENOTDIR, "it is not a folder of this user")


def take_over(old: Path, new: Path, most: int) -> None:
    """Move files that a former keeper kept at another place; unfit files stay behind."""
    if not new.exists() and os.path.lexists(old):
        with contextlib.suppress(OSError):
            write(new, read(old, most))
            old.unlink()


def printable(name: str) -> str:
    """A name from a folder as a text that can be shown and sent, whatever bytes it has."""
    return os.fsencode(name).decode("utf-8", errors="backslashreplace")[:200]
