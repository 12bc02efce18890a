"""Named places where a test can have the process killed.

`PERDURE_CRASH_AT="committer.before_commit:3"` ends the process by SIGKILL the third time it passes
that place. Without the variable a place costs one comparison, or none where `armed` is asked first.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

_wanted = os.environ.get("PERDURE_CRASH_AT", "").partition(":")
armed: str = _wanted[0]
_count: str = _wanted[2]
_passed: Counter[str] = Counter()


def arm(name: str, count: int = 1) -> None:
    """Have this process killed the `count`th time it passes `name`, counted from now."""
    global armed, _count
    armed, _count = name, str(count)
    _passed.clear()


def place(name: str) -> None:
    if armed and name == armed:
        _passed[name] += 1
        if _passed[name] >= int(_count or 1):
            os.kill(os.getpid(), signal.SIGKILL)
