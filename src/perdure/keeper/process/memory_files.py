"""Files in memory, whose content reaches no disk."""

from __future__ import annotations

import os
import tempfile


def memory_file() -> int:
    """The descriptor of a new, empty one; an unlinked file where the system has no memfd."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("perdure", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def memory_file_with(data: bytes | bytearray) -> int:
    """The descriptor of one that holds these bytes, to be read from its start."""
    fd = memory_file()
    written = 0
    while written < len(data):
        with memoryview(data) as view, view[written:] as rest:
            written += os.write(fd, rest)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
