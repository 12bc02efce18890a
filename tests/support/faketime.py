"""A real wall clock that can be set, for whole processes: libfaketime, loaded into them before anything else.

Only the wall is set. The clocks that never jump are left as they are, so that leases go on as on a real machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

_PLACES = ("/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/lib64/faketime", "/usr/local/lib/faketime")


@cache
def library() -> Path | None:
    """Where libfaketime is; installed when that is ours to do, None when it cannot be had."""
    if (found := _find()) is None and os.getuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-qq"], check=False, capture_output=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "libfaketime"], check=False, capture_output=True)
        found = _find()
    return found


def _find() -> Path | None:
    for place in _PLACES:
        for found in sorted(Path("/").glob(f"{place[1:]}/libfaketimeMT.so.1")):
            return found
    return None


class Wall:
    """The wall clock of all processes that are started with `env`."""

    def __init__(self, path: Path) -> None:
        self._path, self._ahead = path, timedelta(0)
        self.set(timedelta(0))

    @property
    def env(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def set(self, by: timedelta) -> None:
        """Forward or back, at once, for all of them."""
        self._ahead += by
        fresh = self._path.with_suffix(".new")
        fresh.write_text(f"{self._ahead.total_seconds():+.3f}\n")
        fresh.chmod(0o644)
        fresh.replace(self._path)


def mend_sleep() -> None:
    """In a process under libfaketime: it takes sleeping until a moment of the steady clock for a moment of its own."""
    never = threading.Event()

    def sleep(seconds: Any) -> None:
        never.wait(seconds)

    time.sleep = sleep
