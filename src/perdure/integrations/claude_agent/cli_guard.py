"""Start the CLI so that it dies with the process that started it. Run as a script, by `guarded`; imports nothing else.

Left alone, the CLI notices that its parent is gone, tells the model that its tool was interrupted, and goes on. It
makes another paid call, and writes into a transcript that the next process has resumed meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 0.2


@contextmanager
def guarded(cli: str) -> Iterator[str]:
    """A program that is the CLI, and dies with this process."""
    folder = tempfile.mkdtemp(prefix="perdure-claude-")
    try:
        script = Path(folder, "claude")
        command = [sys.executable, "-I", "-S", __file__, str(os.getpid()), cli]
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        script.chmod(stat.S_IRWXU)
        yield str(script)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(parent: int, command: list[str]) -> int:
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            return 1
        os.execv(command[0], command)
    return _watch(parent, command)


def _watch(parent: int, command: list[str]) -> int:
    """Without help of the kernel: stand between parent and child, and check for the parent's end."""
    child = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while child.poll() is None:
        if os.getppid() != parent:
            child.kill()
        time.sleep(_LOOK_SECONDS)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
