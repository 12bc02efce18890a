"""Watch sockets, and call a function when one is ready."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections.abc import Callable

from perdure.keeper.pgproxy.client_link import is_ours


class Poller:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._masks: dict[int, int] = {}
        self._answers: dict[int, Callable[[], None]] = {}

    def watch(self, link: socket.socket, mask: int, answer: Callable[[], None] | None = None) -> None:
        """Call `answer` at these events, instead of at those before; the answer stays when none is given."""
        fd = link.fileno()
        if fd < 0:
            return
        if answer is not None:
            self._answers[fd] = answer
        before = self._masks.get(fd, 0)
        if before == mask:
            return
        if not before:
            self._selector.register(fd, mask)
        elif mask:
            self._selector.modify(fd, mask)
        else:
            self._selector.unregister(fd)
        self._masks[fd] = mask

    def release(self, link: socket.socket) -> None:
        """Wait for it no more; it stays open."""
        self.watch(link, 0)
        self._masks.pop(link.fileno(), None)
        self._answers.pop(link.fileno(), None)

    def forget(self, link: socket.socket) -> None:
        """Wait for it no more, and close it."""
        self.release(link)
        link.close()

    def listen(self, listener: socket.socket, arrived: Callable[[socket.socket], None]) -> None:
        """Have `arrived` called with each connection of this user's processes."""

        def accept() -> None:
            with contextlib.suppress(OSError):
                link, _ = listener.accept()
                link.setblocking(False)
                if is_ours(link):
                    arrived(link)
                else:
                    link.close()

        listener.setblocking(False)
        self.watch(listener, selectors.EVENT_READ, accept)

    def poll(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            answer = self._answers.get(key.fd)
            if answer is not None:
                answer()
