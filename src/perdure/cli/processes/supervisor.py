"""Run worker processes, and restart one that dies; each early death doubles the wait before the restart."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

FIRST_WAIT, LONGEST_WAIT = 0.2, 30.0
# A worker that lived this long (in seconds) did not die because of its start.
GROWN_UP = 10.0
_LOOK = 0.05

# Prints a line for people, or a value for programs.
Say = Callable[[str, dict[str, object]], None]


@dataclass
class Child:
    number: int
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    wait: float = FIRST_WAIT
    due: float = 0.0
    has_left: bool = False  # it stopped by itself, as after a drain


class Supervisor:
    def __init__(self, argv: Sequence[str], count: int, grace: float, say: Say) -> None:
        self._argv, self._grace, self._say = list(argv), grace, say
        self._children = [Child(number) for number in range(1, count + 1)]
        self._signal = 0

    def run(self) -> int:
        """Run until a signal arrives or every worker has stopped by itself; returns the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._heard)
        while not self._signal and not all(child.has_left for child in self._children):
            for child in self._children:
                self._look_after(child)
            time.sleep(_LOOK)
        self._end()
        return 130 if self._signal == signal.SIGINT else 0

    def _heard(self, number: int, _frame: object) -> None:
        self._signal = number

    def _look_after(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is None:
            if not child.has_left and now >= child.due:
                self._start(child, now)
            return
        code = child.process.poll()
        if code is None:
            return
        child.process = None
        if code == 0:
            child.has_left = True
            self._say(f"worker {child.number} has stopped", {"event": "left", "worker": child.number})
            return
        child.wait = FIRST_WAIT if now - child.started > GROWN_UP else min(child.wait * 2, LONGEST_WAIT)
        child.due = now + child.wait
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        line = f"worker {child.number} ended ({how}); restarting it in {child.wait:.1f} s"
        self._say(line, {"event": "ended", "worker": child.number, "code": code})

    def _start(self, child: Child, now: float) -> None:
        child.process = subprocess.Popen(self._argv, stdin=subprocess.DEVNULL, preexec_fn=_end_with_parent)  # noqa: PLW1509 - no threads here
        child.started = now
        event = {"event": "started", "worker": child.number, "pid": child.process.pid}
        self._say(f"worker {child.number} started (pid {child.process.pid})", event)

    def _end(self) -> None:
        """Ask all workers to stop, and kill those that have not stopped within their grace."""
        left = [child.process for child in self._children if child.process is not None]
        for process in left:
            process.send_signal(signal.SIGTERM)
        end = time.monotonic() + self._grace
        for process in left:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def worker_argv(target: str, options: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "perdure", "worker", target, *options]


def _end_with_parent() -> None:
    """Let the workers of a killed supervisor stop too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() == 1:
            os._exit(1)
