"""A shell's own line to the keeper, by which it says that a mark in its output is its own.

The line is a socket whose other end belongs to the shell and to no program it starts: exec closes it. A mark counts if
the same words were sent here before, once. A program that wants to fake the end of a command finds nothing useful in
the shell's variables, environment or files.

What was said stays in the socket, which the anchor holds, until the keeper has written down what follows from it.
So a keeper may be killed anywhere, and the next one hears it again.

A program of the same user that may look into the shell's memory (ptrace), and code that the shell itself reads
(`source`, `eval`), are not kept out: they are the shell.
"""

from __future__ import annotations

import select
import socket

# More than a shell says between two prompts; of one that says more, the older part is dropped.
_MOST = 1 << 16


class ShellLine:
    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(False)
        self._taken: set[bytes] = set()  # of what is still in the socket
        self._poll = select.poll()
        self._poll.register(self._socket, 0)

    @property
    def is_over(self) -> bool:
        """The shell has closed its end, or became another program; earlier messages may still be here."""
        return any(events & select.POLLHUP for _, events in self._poll.poll(0))

    def was_said(self, words: str) -> bool:
        """True if the shell has said this; true once."""
        wanted = words.encode()
        said = self._look()
        if len(said) >= _MOST:
            self._drop(said.rfind(b"\n", 0, _MOST // 2) + 1 or _MOST // 2)
            said = self._look()
        if wanted in self._taken or wanted not in said.split(b"\n")[:-1]:
            return False
        self._taken.add(wanted)
        return True

    def settle(self, words: str) -> None:
        """Everything said up to and with this has been written down."""
        said, wanted = self._look(), words.encode() + b"\n"
        at = said.find(wanted)
        if at >= 0:
            for line in said[: at + len(wanted)].split(b"\n"):
                self._taken.discard(line)
            self._drop(at + len(wanted))

    def close(self) -> None:
        self._socket.close()

    def _look(self) -> bytes:
        try:
            return self._socket.recv(_MOST, socket.MSG_PEEK)
        except OSError:
            return b""

    def _drop(self, length: int) -> None:
        while length > 0:
            try:
                length -= len(self._socket.recv(length)) or length
            except OSError:
                return
