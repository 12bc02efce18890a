"""Run worker processes and a server, and restart one that dies; each early death doubles the wait."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
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


# Exit codes of a server that would end the same way again: its options, or that it may not serve like that.
_FOR_GOOD = (2, 4, 5)


class ServerCommand:
    """The command that starts the server, with a socket that listens already and outlives a server that dies."""

    def __init__(self, options: Sequence[str], listening: socket.socket) -> None:
        fd = listening.fileno()
        self.argv = [sys.executable, "-m", "perdure", "serve", "--listen-fd", str(fd), *options]
        self.fds = (fd,)


@dataclass
class Child:
    name: str
    number: int
    argv: list[str]
    fds: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    wait: float = FIRST_WAIT
    due: float = 0.0
    has_left: bool = False  # it stopped by itself, as after a drain


class Supervisor:
    def __init__(
        self, argv: Sequence[str], count: int, grace: float, say: Say, server: ServerCommand | None = None
    ) -> None:
        self._grace, self._say = grace, say
        self._workers = [Child(f"worker {number}", number, list(argv)) for number in range(1, count + 1)]
        self._server = Child("server", 0, server.argv, server.fds) if server else None
        self._children = [*self._workers, *([self._server] if self._server else [])]
        self._signal = 0
        self._refused = 0  # exit code of a server that need not be tried again

    def run(self) -> int:
        """Run until a signal arrives or every worker has stopped by itself; returns the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._heard)
        while not self._signal and not self._refused and not all(child.has_left for child in self._workers):
            for child in self._children:
                self._look_after(child)
            time.sleep(_LOOK)
        self._end()
        if self._refused:
            return self._refused
        return 130 if self._signal == signal.SIGINT and self._server is None else 0

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
            self._say(f"{child.name} has stopped", {"event": "left", "worker": child.number})
            return
        if child is self._server and code in _FOR_GOOD:
            self._refused = code
            return
        child.wait = FIRST_WAIT if now - child.started > GROWN_UP else min(child.wait * 2, LONGEST_WAIT)
        child.due = now + child.wait
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        line = f"{child.name} ended ({how}); restarting it in {child.wait:.1f} s"
        self._say(line, {"event": "ended", "worker": child.number, "code": code})

    def _start(self, child: Child, now: float) -> None:
        child.process = subprocess.Popen(
            child.argv,
            stdin=subprocess.DEVNULL,
            pass_fds=child.fds,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - no threads here
        )
        child.started = now
        event = {"event": "started", "worker": child.number, "pid": child.process.pid}
        if child is not self._server:  # which says by itself where it is
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
