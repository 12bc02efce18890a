"""The threads that carry rings to other processes and from them.

Neither delays other work. The teller sends the news since its last message and then rests for a while, so that a
process with thousands of writes a second rings some dozens of times. The listener runs while something in this process
wants to hear.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from perdure._store.contract import Kinds, Line
from perdure.errors import PerdureError

log = logging.getLogger("perdure.bell")

# Between two rings to others, at least, and between two from others.
GAP_SECONDS, LONGEST_GAP_SECONDS = 0.01, 0.03
# How long a listener stays after the last subscriber has left: one that waits once often waits again.
STAYS_SECONDS = 5.0
_LAST_WORD_SECONDS = 1.0


class Teller:
    """Tells others; the first time, it begins a thread."""

    def __init__(self, line: Line | None) -> None:
        self._line = line if line is not None and line.has_to_be_told else None
        self._bell = threading.Condition()
        self._kinds: Kinds = frozenset()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def tell(self, kinds: Kinds) -> None:
        if self._line is None or kinds <= self._kinds:
            return
        with self._bell:
            self._kinds |= kinds
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, args=(self._line,), name="perdure-bell", daemon=True)
                self._thread.start()
            self._bell.notify()

    def _run(self, line: Line) -> None:
        while kinds := self._next():
            began = time.monotonic()
            line.tell(kinds)
            rest = min(max(GAP_SECONDS, 10 * (time.monotonic() - began)), LONGEST_GAP_SECONDS)
            with self._bell:
                self._bell.wait_for(lambda: self._is_closed, rest)

    def _next(self) -> Kinds:
        """The next news; nothing at the end."""
        with self._bell:
            self._bell.wait_for(lambda: self._kinds or self._is_closed)
            kinds, self._kinds = self._kinds, frozenset()
            return kinds

    def close(self) -> None:
        """Tell what is still to be told, if that can be done soon."""
        with self._bell:
            self._is_closed = True
            self._bell.notify()
        if self._thread is not None:
            self._thread.join(_LAST_WORD_SECONDS)


class Listener:
    """Listens to other processes while something in this process subscribes."""

    def __init__(self, line: Line | None, ring: Callable[[Kinds], None]) -> None:
        self._line, self._ring = line, ring
        self._mutex = threading.Lock()
        self._listeners = 0
        self._left_at = 0.0
        self._is_closed = False
        self._thread: threading.Thread | None = None

    @property
    def is_open(self) -> bool:
        """True if other processes are heard now; true if there cannot be any."""
        return self._line is None or (self._thread is not None and self._line.is_open)

    def join(self) -> None:
        with self._mutex:
            self._listeners += 1
            if self._thread is None and self._line is not None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, args=(self._line,), name="perdure-ear", daemon=True)
                self._thread.start()

    def leave(self) -> None:
        with self._mutex:
            self._listeners -= 1
            self._left_at = time.monotonic()

    def _run(self, line: Line) -> None:
        while self._is_wanted(line):
            try:
                kinds = line.hear()
            except PerdureError as error:
                log.warning("other processes are not heard: %s; what they do is found by looking", error.what)
                time.sleep(_LAST_WORD_SECONDS)
                continue
            if kinds:
                self._ring(kinds)
                # News that arrives together is one ring: those who are rung need time to work.
                time.sleep(GAP_SECONDS)

    def _is_wanted(self, line: Line) -> bool:
        with self._mutex:
            stays = self._listeners > 0 or time.monotonic() - self._left_at < STAYS_SECONDS
            if stays and not self._is_closed:
                return True
            line.hang_up()
            self._thread = None
            return False

    def close(self) -> None:
        with self._mutex:
            self._is_closed, thread = True, self._thread
        if thread is not None and self._line is not None:
            self._line.interrupt()
            thread.join(_LAST_WORD_SECONDS)
