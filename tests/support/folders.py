"""Folders for stores whose speed on a real disk is not the question."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A folder in memory, if the machine has such a file system: here the syncs are counted, not felt."""
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-", dir=parent) as folder:
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
