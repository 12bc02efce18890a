"""Reach what is beneath a folder without following any link on the way.

Between a look at a folder and the work in it, a program that runs there can put a link in the place of a folder or a
file. A path would then lead out of it; a walk from descriptor to descriptor does not.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_ITSELF = os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


@contextmanager
def parent_of(root: bytes, path: bytes) -> Iterator[tuple[int, bytes]]:
    """The folder that holds `path`, as a descriptor, and the last part of the path.

    Raises:
        OSError: a folder on the way is not there, or is none: a link, say.
    """
    folder, _, name = path.rpartition(b"/")
    number = os.open(root, _FOLDER)
    try:
        for part in folder.split(b"/") if folder else ():
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=number)
            os.close(number)
            number = inner
        yield number, name
    finally:
        os.close(number)


def is_there(parent: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def open_file(root: bytes, path: bytes) -> IO[bytes]:
    """A file for reading.

    Raises:
        FileNotFoundError: it is gone, or something else is in its place: a link, a pipe.
    """
    try:
        with parent_of(root, path) as (parent, name):
            number = os.open(name, _FILE, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise FileNotFoundError(errno.ENOENT, "another thing is in its place", path) from None
        raise
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise FileNotFoundError(errno.ENOENT, "another thing is in its place", path)
    return open(number, "rb")


def read_link(root: bytes, path: bytes) -> bytes:
    """
    Raises:
        FileNotFoundError: it is gone, or no link any more.
    """
    try:
        with parent_of(root, path) as (parent, name):
            return os.readlink(name, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ELOOP, errno.ENOTDIR):
            raise FileNotFoundError(errno.ENOENT, "another thing is in its place", path) from None
        raise


def set_mode(parent: int, name: bytes, mode: int) -> None:
    """
    Raises:
        OSError: it is a link.
    """
    number = os.open(name, _ITSELF, dir_fd=parent)
    try:
        if stat.S_ISLNK(os.fstat(number).st_mode):
            raise OSError(errno.ELOOP, "a link is in its place", name)
        if hasattr(os, "O_PATH"):
            os.chmod(f"/proc/self/fd/{number}", mode)
        else:
            os.fchmod(number, mode)
    finally:
        os.close(number)
