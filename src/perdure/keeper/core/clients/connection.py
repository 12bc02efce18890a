"""One client's connection in the keeper: frames in, frames out, nothing that blocks."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from perdure.keeper.core.clients import wire
from perdure.keeper.process import processes

# A client with more unread bytes than this gets no news. It is told, and reads by offset instead.
MOST_UNREAD = 4 << 20
_SMALL = 1 << 13  # smaller ones go out together


class Connection:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        *,
        asked: Callable[[Connection, wire.Request], None],
        left: Callable[[Connection], None],
    ) -> None:
        self._loop, self.sock, self._asked, self._left = loop, sock, asked, left
        self._decoder = wire.Decoder()
        self._out: deque[tuple[bytes | memoryview, tuple[int, ...]]] = deque()
        self._unread = 0
        self._is_writer = False  # the loop tells when more can be written
        self._is_answering = False  # messages are collected here and sent together
        self._fd = sock.fileno()
        self.is_open = True
        self.version = 0  # until it has said hello
        self.is_admitted = False  # it may ask, if only about the keeper itself
        self.is_told: set[str] = set()  # units that were made again for it; its next question shows that it knows
        self.speaks_for = ""  # the unit whose token it has shown
        self.pid = self.start = 0
        sock.setblocking(False)
        loop.add_reader(self._fd, self._read)

    # ── in ──────────────────────────────────────────────────────────────────────────────────────

    def _read(self) -> None:
        try:
            data, fds = wire.receive(self.sock)
            if not data:
                self.close()
                return
            self._is_answering = True
            for message in self._decoder.feed(data, fds):
                if not isinstance(message, wire.Request):
                    for fd in message.fds:
                        os.close(fd)
                    raise wire.BadFrame("only requests come this way")
                self._asked(self, message)
        except BlockingIOError:
            return
        except (OSError, wire.BadFrame):
            self.close()
        finally:
            self._is_answering = False
            if self.is_open and self._out and not self._is_writer:
                self._write()

    # ── out ─────────────────────────────────────────────────────────────────────────────────────

    def send(self, message: wire.Message) -> None:
        """As soon as the other end takes it; descriptors are closed here once they are sent."""
        if not self.is_open:
            for fd in message.fds:
                os.close(fd)
            return
        data = wire.encode(message)
        if self._out and not message.fds and len(self._out[-1][0]) < _SMALL:
            before, fds = self._out.pop()
            self._out.append((bytes(before) + data, fds))
        else:
            self._out.append((data, message.fds))
        self._unread += len(data)
        if not self._is_answering and not self._is_writer:
            self._write()

    def tell(self, topic: str, values: dict[str, Any], body: bytes = b"") -> bool:
        if self._unread > MOST_UNREAD or not self.is_open:
            return False
        self.send(wire.News(topic, values, body))
        return True

    def _write(self) -> None:
        try:
            while self._out:
                data, fds = self._out[0]
                sent = socket.send_fds(self.sock, [data], fds) if fds else self.sock.send(data)
                for fd in fds:
                    os.close(fd)
                self._unread -= sent
                if sent < len(data):
                    self._out[0] = (memoryview(data)[sent:], ())
                else:
                    self._out.popleft()
            if self._is_writer:
                self._is_writer = False
                self._loop.remove_writer(self._fd)
        except BlockingIOError:
            self._is_writer = True
            self._loop.add_writer(self._fd, self._write)
        except OSError:
            self.close()

    def has_died(self) -> bool:
        """True if the other end has gone, although the socket has not reported it yet."""
        if self.pid and not processes.is_same(self.pid, self.start):
            return True
        looking = select.poll()
        looking.register(self._fd, getattr(select, "POLLRDHUP", select.POLLHUP))
        return bool(looking.poll(0))

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            self.sock.close()
            self._decoder.close()
            while self._out:
                for fd in self._out.popleft()[1]:
                    os.close(fd)
            self._left(self)
