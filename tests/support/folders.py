"""Folders for stores whose speed on a real disk is not the question."""

from __future__ import annotations

import os
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
