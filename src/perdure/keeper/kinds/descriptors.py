"""Files, listening sockets and pipes whose open description outlives the process that uses it.

The anchor has the descriptor. Each client gets another one of the same description, so a file's position and a socket's
queue continue where they were. A descriptor cannot be taken back, so it is given to one process at a time: to the next
one when the former has ended, or when it is taken, which ends the former.

Owns who has a descriptor. The content of a file is up to its users.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import stat
import struct
import termios
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from perdure.keeper.anchor import start_of
from perdure.keeper.core import Answer, Call, Held, Kind, Refused, Unit, Verb
from perdure.keeper.process import processes

_LOOK_SECONDS = 0.005
_PATIENCE_SECONDS = 5.0
_FRESH_NS = 2_000_000_000
BACKLOG = 512
_FLAGS = {
    "rb": os.O_RDONLY,
    "r+b": os.O_RDWR,
    "wb": os.O_WRONLY | os.O_CREAT,
    "w+b": os.O_RDWR | os.O_CREAT,
    "ab": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "a+b": os.O_RDWR | os.O_CREAT | os.O_APPEND,
    "xb": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "x+b": os.O_RDWR | os.O_CREAT | os.O_EXCL,
}
MODES = tuple(_FLAGS)
# States of a TCP connection, as the kernel numbers them: it has ended; the other end has closed its side.
_ENDED, _CLOSED_BY_PEER = 7, 8
_TCP_INFO = struct.Struct("8B5I")  # the first byte is the state, the last number what waits to be accepted


class Descriptor(Held):
    """The common part of all kinds of descriptors."""

    parts: tuple[str, ...] = ("fd",)
    has_process = False
    _fds: tuple[int, ...] = ()
    _pidfd = -1  # of the process that has it

    def make(self) -> tuple[int, ...]:
        """Open it."""
        raise NotImplementedError

    def start(self) -> None:
        self._fds = self.make()
        for part, fd in zip(self.parts, self._fds, strict=True):
            self.keeper.anchored.put(f"{self.unit.uid}/{part}", fd)

    def recover(self) -> None:
        self._fds = tuple(self.keeper.anchored.get(f"{self.unit.uid}/{part}")[0] for part in self.parts)
        if (holder := self.unit.facts.get("holder")) and processes.is_same(*holder):
            self._watch_holder(*holder)

    def stand(self) -> list[int] | None:
        """Its size and time of change, which show whether it was changed while none of our processes had it."""
        return None

    async def give(self, call: Call) -> Answer:
        """A descriptor of it, for the process that asks."""
        pid = int(getattr(call.caller, "pid", 0))
        who = [pid, start_of(pid)]
        former = self.unit.facts.get("holder")
        if former and former != who and processes.is_same(*former):
            if not call.get("take", bool, False):
                raise Refused("held", pid=former[0])
            await self._end_holder(*former)
        told = dict(self.unit.facts)
        self.unit.facts["holder"] = who
        self.unit.facts.pop("left", None)  # from now on it is changed by who has it
        self.keeper.save(self.unit)
        self._watch_holder(*who)
        self.touch()
        return Answer({"facts": told}, fds=tuple(os.dup(fd) for fd in self._fds))

    def _watch_holder(self, pid: int, start: int) -> None:
        """Note its state at the moment its process ends: later changes were made by others."""
        self._unwatch()
        with contextlib.suppress(OSError, AttributeError):  # it has just ended; or there are no pidfds here
            self._pidfd = os.pidfd_open(pid)
            self.keeper.loop.add_reader(self._pidfd, self._holder_ended)

    def _holder_ended(self) -> None:
        self._unwatch()
        if self._fds and (left := self.stand()) is not None:
            self.unit.facts["left"] = left
            # Changed just now: by the process that has ended, or by another one that was quicker than we are.
            self.unit.facts["is_fresh"] = abs(time.time_ns() - left[1]) < _FRESH_NS
            self.keeper.save(self.unit)

    def _unwatch(self) -> None:
        if self._pidfd >= 0:
            self.keeper.loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    async def _end_holder(self, pid: int, start: int) -> None:
        """It cannot be made to close a descriptor; so it is ended before another gets one."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        end = self.keeper.loop.time() + _PATIENCE_SECONDS
        while processes.is_same(pid, start):
            if self.keeper.loop.time() > end:
                raise Refused("held", pid=pid)
            await asyncio.sleep(_LOOK_SECONDS)

    def mark(self, call: Call) -> Answer:
        """Store how far its user has got, in the user's own words; the next user gets it."""
        mark = call.get("mark", dict, {})
        self.unit.facts["mark"] = mark
        self.keeper.save(self.unit, through_power_loss=call.get("through_power_loss", bool, True))
        self.touch()
        return Answer()

    def note_basis(self, call: Call) -> Answer:
        """Note the state of the file when its present process took it."""
        self.unit.facts["basis"] = call.get("basis", dict, {})
        self.keeper.save(self.unit)
        return Answer()

    def end(self, number: int = signal.SIGTERM) -> None:
        """Close it here. A process that was given one keeps it until it closes it too."""
        self._close()
        for part in self.parts:
            self.keeper.anchored.drop(f"{self.unit.uid}/{part}")
        self.unit.ended, self.unit.ended_at = 0, self.keeper.now()
        self.keeper.save(self.unit)

    def _close(self) -> None:
        self._unwatch()
        fds, self._fds = self._fds, ()
        for fd in fds:
            os.close(fd)

    def forget(self) -> None:
        self._close()

    @classmethod
    def rebuild(cls, keeper: object, old: Unit) -> dict[str, Any]:
        kept = {name: old.facts[name] for name in ("mark", "file", "basis") if name in old.facts}
        return {**old.recipe, "former": kept, "was_released": bool(old.facts.get("released"))}

    verbs: ClassVar[Mapping[str, Verb]] = {"give": give, "mark": mark, "basis": note_basis}
    writes: ClassVar[frozenset[str]] = frozenset({"mark"})


class File(Descriptor):
    @classmethod
    def check(cls, recipe: dict[str, Any]) -> None:
        if recipe.get("mode") not in _FLAGS:
            raise Refused("invalid", what=f"mode is {recipe.get('mode')!r}; choose from {', '.join(MODES)}")
        path = recipe.get("path")
        if not isinstance(path, str) or not os.path.isabs(path) or "\0" in path:
            raise Refused("invalid", what=f"path is {path!r}")

    def make(self) -> tuple[int, ...]:
        recipe = self.unit.recipe
        flags = _FLAGS[recipe["mode"]]
        if recipe.get("was_released"):  # a replay may open it again: it is never emptied a second time
            flags &= ~os.O_EXCL
        elif "former" in recipe:  # again, and not anew: it has to be there, and keeps what is in it
            flags &= ~(os.O_EXCL | os.O_CREAT)
        elif recipe["mode"].startswith("w"):
            flags |= os.O_TRUNC
        # Opening a device or a pipe can block, and would block this loop.
        fd = os.open(recipe["path"], flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, int(recipe.get("mask", 0o600)))
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            os.close(fd)
            raise Refused("invalid", what=f"{recipe['path']} is not a plain file")
        os.set_blocking(fd, True)
        self.unit.facts["file"] = [about.st_dev, about.st_ino]
        self.unit.facts.update(recipe.get("former") or {})
        return (fd,)

    def stand(self) -> list[int] | None:
        about = os.fstat(self._fds[0])
        return [about.st_size, about.st_mtime_ns]


class Listener(Descriptor):
    @classmethod
    def check(cls, recipe: dict[str, Any]) -> None:
        port = recipe.get("port")
        if not isinstance(port, int) or not 0 <= port < 65536 or not isinstance(recipe.get("host"), str):
            raise Refused("invalid", what=f"host is {recipe.get('host')!r}, port {port!r}")

    def make(self) -> tuple[int, ...]:
        recipe = self.unit.recipe
        family = socket.AF_INET6 if ":" in recipe["host"] else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((recipe["host"], recipe["port"]))
            sock.listen(BACKLOG)
            sock.setblocking(False)
            self.unit.facts["port"] = sock.getsockname()[1]
            return (os.dup(sock.fileno()),)

    @classmethod
    def rebuild(cls, keeper: object, old: Unit) -> dict[str, Any]:
        return {**old.recipe, "port": old.facts.get("port", old.recipe["port"])}

    def about(self) -> dict[str, Any]:
        return {"waiting_connections": _tcp_info(self._fds[0])[1]} if self._fds else {}


class Pipe(Descriptor):
    parts = ("out", "in")

    def make(self) -> tuple[int, ...]:
        return os.pipe()

    def about(self) -> dict[str, Any]:
        return {"unread": _unread(self._fds[0])} if self._fds else {}


class Socket(Descriptor):
    """A connection that the opening client has made and handed over."""

    @classmethod
    def check(cls, recipe: dict[str, Any]) -> None:
        Listener.check(recipe)

    def make(self) -> tuple[int, ...]:
        if not self.given_fds:
            raise Refused("invalid", what="no connection came along")
        return (os.dup(self.given_fds[0]),)

    def look(self) -> None:
        """A connection that its other end has reset, or has closed and nothing of it is left to read, is none."""
        if not self._fds:
            return
        state, unread = _tcp_info(self._fds[0])[0], _unread(self._fds[0])
        if state == _ENDED:
            left = f"; {unread:,} bytes of it were not read" if unread else ""
            self.lose(f"its other end has broken the connection{left}")
        elif state == _CLOSED_BY_PEER and not unread:
            self.lose("its other end has closed the connection, and all that it had sent was read")

    def about(self) -> dict[str, Any]:
        if not self._fds:
            return {}
        is_closed = _tcp_info(self._fds[0])[0] == _CLOSED_BY_PEER
        return {"unread": _unread(self._fds[0]), "is_closed_by_peer": is_closed}

    @classmethod
    def rebuild(cls, keeper: object, old: Unit) -> dict[str, Any]:
        """Another connection to the same place, made by the asking client."""
        return dict(old.recipe)


def _unread(fd: int) -> int:
    """The number of bytes that wait to be read."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


def _tcp_info(fd: int) -> tuple[int, int]:
    """The state of a TCP socket, and, of one that listens, how many connections wait; zeros where it is not told.

    Not by SO_ERROR: the kernel tells that once, and the process that has the socket would not hear of it any more.
    """
    if not hasattr(socket, "TCP_INFO"):
        return 0, 0
    try:
        with socket.socket(fileno=os.dup(fd)) as sock:
            told = _TCP_INFO.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size))
    except OSError:
        return 0, 0
    return told[0], told[12]


KINDS = (
    Kind("file", File, lambda recipe: (recipe.get("path"), recipe.get("mode"))),
    Kind("listener", Listener, lambda recipe: (recipe.get("host"), recipe.get("port"))),
    Kind("pipe", Pipe, lambda recipe: None),
    Kind("socket", Socket, lambda recipe: (recipe.get("host"), recipe.get("port"))),
)
