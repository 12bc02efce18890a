"""The socket for clients, and its folder.

The folder is in memory, where others clean up: the end of a login session may remove it while the keeper and its units
are alive. Then it is made again, with a socket of the same name, which the anchor holds for the next keeper.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import socket
import stat
from pathlib import Path
from typing import Protocol

from perdure.keeper.core.clients.connection import Connection
from perdure.keeper.core.clients.wire import Request
from perdure.keeper.core.file_bells import REMOVED
from perdure.keeper.core.unit_kinds import KeeperCore

log = logging.getLogger("perdure.keeper")

_NAME = "door"
_MOST_WAITING = 128
_MANY = 1 << 16  # where nothing limits them


class Listening(KeeperCore, Protocol):
    """The keeper, as connections need it."""

    def asked(self, connection: Connection, request: Request) -> None: ...

    def left(self, connection: Connection) -> None: ...


class Door:
    def __init__(self, keeper: Listening) -> None:
        self._keeper = keeper
        self._path = Path(keeper.listener.getsockname())

    def open(self) -> None:
        """Let clients in, also by a socket that a former keeper had to make."""
        self._listen(self._keeper.listener)
        with contextlib.suppress(KeyError):
            self._listen(socket.socket(fileno=self._keeper.anchored.get(_NAME)[0]))
        self._hear_of_removal()

    def watch(self) -> None:
        """Called now and then, and when the folder was removed."""
        if self.mend():
            self.mend_units()
            self._hear_of_removal()

    def _hear_of_removal(self) -> None:
        self._keeper.bells.watch(str(self._path.parent), self.watch, REMOVED)

    def mend_units(self) -> None:
        for held in list(self._keeper.held.values()):
            held.mend()

    def mend(self) -> bool:
        """Make folder and socket again if they were removed; whether they were."""
        if self._path.exists():
            return False
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        found = self._path.parent.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            log.error("%s was removed, and now belongs to another user", self._path.parent)
            return False
        self._path.parent.chmod(0o700)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._path))
        self._path.chmod(0o600)
        listener.listen(_MOST_WAITING)
        self._keeper.anchored.put(_NAME, listener.fileno())
        self._listen(listener)
        log.warning("%s was removed, and was made again", self._path.parent)
        return True

    def _listen(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        self._keeper.loop.add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        keeper = self._keeper
        with contextlib.suppress(BlockingIOError, OSError):
            sock, _ = listener.accept()
            if len(keeper.connections) >= _most_connections():
                sock.close()  # descriptors are left for units
                return
            keeper.connections.add(Connection(keeper.loop, sock, asked=keeper.asked, left=keeper.left))


def _most_connections() -> int:
    may_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return may_open // 2 if may_open > 0 else _MANY
