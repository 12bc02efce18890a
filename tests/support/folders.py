"""Folders for stores whose speed on a real disk is not the question."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 2 << 30  # bytes free; a container may have 64 MB there


def memory() -> Path | None:
    """A folder in memory where tests may write much and start programs, if this machine has one.

    A killed process loses nothing that the kernel has, so syncs need no disk: here they are counted, not felt.
    """
    if not os.access(_MEMORY, os.W_OK):
        return None
    found = os.statvfs(_MEMORY)
    is_closed = bool(found.f_flag & os.ST_NOEXEC)
    return None if is_closed or found.f_bavail * found.f_frsize < _ROOM else _MEMORY


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A folder in memory, if the machine has such a file system."""
    # A process that still writes into it may keep the last of it from being removed.
    with tempfile.TemporaryDirectory(prefix="perdure-", dir=memory(), ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def remove_tree(folder: Path) -> None:
    """Remove a folder into which a process still writes: what it adds meanwhile is removed too."""
    for _ in range(100):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
        else:
            return
    raise AssertionError(f"{folder} is filled faster than it can be removed")
