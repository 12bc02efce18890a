"""Connect a person to a kept terminal: pass keys in and output out, until it ends or the person detaches."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator

from perdure._ground.bridge import drive
from perdure._runtime import Command, exit_code
from perdure.errors import PerdureError, UnitHeld

DETACH = 0x1D  # Ctrl-]
_LOOK_SECONDS = 0.2
_FAILED = 1


class Attached:
    """One person's view of a command or shell. The person can type unless another person does."""

    def __init__(self, unit: Command, *, start: int | None = None) -> None:
        self._unit = unit
        about = unit.record.about
        # Start with all kept output, so that the person misses nothing.
        self._at = max(0, int(about.get("begin", 0))) if start is None else start
        self._errors_at = 0
        self._may_write = True

    def show(self) -> int | None:
        """Show it until it ends (returns its exit code) or the person detaches (returns None)."""
        is_person = sys.stdin is not None and sys.stdin.isatty() and self._unit.is_terminal
        with _raw(0) if is_person else contextlib.nullcontext():
            detached = threading.Event()
            keys: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
            if is_person:
                threading.Thread(target=self._listen, args=(keys, detached), daemon=True).start()
                threading.Thread(target=self._type, args=(keys,), daemon=True).start()
                self._follow_size(keys)
            return self._print(detached)

    # ── out ─────────────────────────────────────────────────────────────────────────────────────

    def _print(self, detached: threading.Event) -> int | None:
        while not detached.is_set():
            data, start, gap, is_over = drive(self._unit.output(self._at, _LOOK_SECONDS))
            if gap:
                _write(2, f"\r\n[{gap:,} bytes are no longer kept]\r\n".encode())
            _write(1, data)
            self._at = start + len(data)
            errors = drive(self._unit.errors(self._errors_at))
            _write(2, errors)
            self._errors_at += len(errors)
            if is_over and not errors:
                status = drive(self._unit.refresh()).ended
                return exit_code(status) if status is not None and status >= 0 else _unseen()
        return None

    # ── in ──────────────────────────────────────────────────────────────────────────────────────

    def _listen(self, keys: queue.SimpleQueue[bytes | None], detached: threading.Event) -> None:
        while True:
            select.select([0], [], [])
            data = os.read(0, 4096)
            if not data or DETACH in data:
                before = data.split(bytes([DETACH]))[0]
                if before:
                    keys.put(before)
                detached.set()
                return
            keys.put(data)

    def _type(self, keys: queue.SimpleQueue[bytes | None]) -> None:
        while True:
            data = keys.get()
            try:
                if data is None:
                    self._resize()
                elif self._may_write:
                    drive(self._unit.type(data))
            except UnitHeld as held:
                self._may_write = False
                _write(2, f"\r\n[{held.what}: you are watching; `perdure attach --take` takes over]\r\n".encode())
            except PerdureError:
                return  # it has ended; _print reports that

    def _resize(self) -> None:
        size = os.get_terminal_size(0)
        if size.lines and size.columns:  # some terminals do not know their size
            drive(self._unit.resize(size.lines, size.columns))

    def _follow_size(self, keys: queue.SimpleQueue[bytes | None]) -> None:
        signal.signal(signal.SIGWINCH, lambda *_: keys.put(None))
        keys.put(None)


def _unseen() -> int:
    """It has ended with an unknown exit code, which does not count as success."""
    _write(2, b"\r\n[it has ended; its exit code is unknown]\r\n")
    return _FAILED


@contextlib.contextmanager
def _raw(fd: int) -> Iterator[None]:
    before = termios.tcgetattr(fd)
    try:
        tty.setraw(fd, termios.TCSADRAIN)  # keep what was typed ahead
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
