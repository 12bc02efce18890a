"""One connection to the keeper, and who reads it.

An event loop that is the only one to wait for answers reads them itself, without a thread between. As soon as
blocking code or a second loop waits too, a thread reads for all of them, so that a busy loop cannot hold up others.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable

from perdure import keeper

Hears = Callable[["Link", keeper.Message], None]


class Link:
    """The reader calls `hears` with each message, and `lost` once with the link when it has ended."""

    def __init__(self, sock: socket.socket, hears: Hears, lost: Callable[[Link], None]) -> None:
        self._sock, self._hears, self._lost = sock, hears, lost
        self._fd, self._decoder = sock.fileno(), keeper.Decoder()
        self._mutex = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None  # that reads
        self._has_thread = False
        self._known_to: asyncio.AbstractEventLoop | None = None  # it looks at our descriptor
        self._sending = threading.Lock()
        self._together: list[bytes] = []  # what is asked in one turn of a loop goes out at its end
        self._sends_soon: asyncio.AbstractEventLoop | None = None
        self.over = threading.Event()

    @property
    def is_over(self) -> bool:
        return self.over.is_set()

    def send_if_there_is_room(self, data: bytes) -> None:
        """The same as `send`, if that need not wait; a keeper that reads nothing fills its socket."""
        if self._sending.acquire(blocking=False):
            try:
                with contextlib.suppress(OSError):
                    if self._sock.send(data, socket.MSG_DONTWAIT) < len(data):
                        self.shut()  # half a message is useless
            finally:
                self._sending.release()

    def send(self, data: bytes, fds: tuple[int, ...] = ()) -> None:
        """Send all of it. If the other end has gone, the reader notices."""
        try:
            with self._sending:
                sent = socket.send_fds(self._sock, [data], list(fds)) if fds else self._sock.send(data)
                if sent < len(data):
                    self._sock.sendall(memoryview(data)[sent:])
        except OSError:
            self.shut()

    def send_soon(self, data: bytes, loop: asyncio.AbstractEventLoop) -> None:
        """The same, from the loop that runs here, together with what else it sends in this turn."""
        self._together.append(data)
        if self._sends_soon is not loop:
            self._sends_soon = loop
            loop.call_soon(self._send_together)

    def _send_together(self) -> None:
        self._sends_soon, together, self._together = None, self._together, []
        self.send(b"".join(together))

    def read_for(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Make sure that answers are read: on this event loop, or by a thread without one."""
        if self._has_thread or (self.loop is loop and loop is not None):
            return
        with self._mutex:
            former = self.loop
            if loop is not None and (former is None or former.is_closed()):
                self.loop = loop
                _call(loop, self._begin_on_loop)
            elif not self._has_thread:
                self.loop, self._has_thread = None, True
                if former is not None:
                    _call(former, lambda: self._leave(former))
                threading.Thread(target=self._read_on, name="perdure-keeper", daemon=True).start()

    def close(self) -> None:
        """Nobody is told."""
        self._lost = lambda _: None
        self.shut()
        with self._mutex:
            loop, has_thread = self.loop, self._has_thread
        if loop is not None and not loop.is_closed():
            _call(loop, self._end_on_loop)
        elif not has_thread:
            self._end()

    def shut(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    # ── by the loop ─────────────────────────────────────────────────────────────────────────────

    def _begin_on_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self.loop is loop and not self.is_over:
            self._known_to = loop
            loop.add_reader(self._fd, self._readable, loop)

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._known_to is loop:
            loop.remove_reader(self._fd)
            self._known_to = None
            if self.is_over:
                self._sock.close()

    def _readable(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._mutex:
            if self.loop is not loop:  # a thread has taken over
                self._leave(loop)
                return
            try:
                data, fds = keeper.receive(self._sock, keeper.AT_ONCE)
                for message in self._decoder.feed(data, fds):
                    self._hears(self, message)
                if data:
                    return
            except (BlockingIOError, InterruptedError):
                return
            except (OSError, keeper.BadFrame):
                pass
        self._end_on_loop()

    def _end_on_loop(self) -> None:
        self._leave(asyncio.get_running_loop())
        self._end()

    # ── by the thread ───────────────────────────────────────────────────────────────────────────

    def _read_on(self) -> None:
        with contextlib.suppress(OSError, keeper.BadFrame):
            while True:
                data, fds = keeper.receive(self._sock)
                if not data:
                    break
                for message in self._decoder.feed(data, fds):
                    self._hears(self, message)
        self._end()

    def _end(self) -> None:
        if not self.is_over:
            self.over.set()
            # A loop forgets the descriptor before it is closed: another file may get its number a moment later.
            if self._known_to is None or self._known_to.is_closed():
                self._sock.close()
            self._decoder.close()
            self._lost(self)


def _call(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """Call it on this loop: at once if that loop is running here."""
    try:
        is_here = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_here = False
    if is_here:
        act()
    else:
        with contextlib.suppress(RuntimeError):  # it was closed meanwhile
            loop.call_soon_threadsafe(act)
