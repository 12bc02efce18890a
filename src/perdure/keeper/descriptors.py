"""Files, listening sockets and pipes whose open description outlives the process that uses it.

The anchor has the descriptor; whoever asks gets another one of the same description, so a file's position and a
socket's queue go on where they were. A descriptor cannot be taken back, so it is given to one process at a time:
to the next one when the former has ended, or when it is taken, which ends the former.

Owns who has a descriptor. What is in a file is the business of whoever reads and writes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import stat
from collections.abc import Mapping
from typing import Any, ClassVar

from perdure.keeper import processes
from perdure.keeper.anchor import start_of
from perdure.keeper.kinds import Answer, Call, Held, Kind, Refused, Verb
from perdure.keeper.units import Unit

_LOOK_SECONDS = 0.005
_PATIENCE_SECONDS = 5.0
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


class Descriptor(Held):
    """What every kind of them has in common."""

    parts: tuple[str, ...] = ("fd",)

    def make(self) -> tuple[int, ...]:
        """Open it."""
        raise NotImplementedError

    def start(self) -> None:
        self._fds = self.make()
        for part, fd in zip(self.parts, self._fds, strict=True):
            self.keeper.anchored.put(f"{self.unit.uid}/{part}", fd)

    def recover(self) -> None:
        self._fds = tuple(self.keeper.anchored.get(f"{self.unit.uid}/{part}")[0] for part in self.parts)

    async def give(self, call: Call) -> Answer:
        """A descriptor of it, for the process that asks."""
        pid = int(getattr(call.caller, "pid", 0))
        who = [pid, start_of(pid)]
        former = self.unit.facts.get("holder")
        if former and former != who and processes.is_same(*former):
            if not call.get("take", bool, False):
                raise Refused("held", pid=former[0])
            await self._end_holder(*former)
        self.unit.facts["holder"] = who
        self.keeper.save(self.unit)
        self.touch()
        return Answer({"facts": self.unit.facts}, fds=tuple(os.dup(fd) for fd in self._fds))

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
        """How far whoever has it has come: what they say is kept, and given to the next."""
        mark = call.get("mark", dict, {})
        self.unit.facts["mark"] = mark
        self.keeper.save(self.unit, through_power_loss=call.get("through_power_loss", bool, True))
        self.touch()
        return Answer()

    def end(self, number: int = signal.SIGTERM) -> None:
        """Close it here. Who has been given one keeps it until it closes it too."""
        self._close()
        for part in self.parts:
            self.keeper.anchored.drop(f"{self.unit.uid}/{part}")
        self.unit.ended, self.unit.ended_at = 0, self.keeper.now()
        self.keeper.save(self.unit)

    def _close(self) -> None:
        fds, self._fds = getattr(self, "_fds", ()), ()
        for fd in fds:
            os.close(fd)

    def forget(self) -> None:
        self._close()

    @classmethod
    def rebuild(cls, keeper: Any, old: Unit) -> dict[str, Any]:
        kept = {name: old.facts[name] for name in ("mark", "file") if name in old.facts}
        return {**old.recipe, "former": kept}

    verbs: ClassVar[Mapping[str, Verb]] = {"give": give, "mark": mark}
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
        if "former" in recipe:  # again, and not anew: it has to be there, and keeps what is in it
            flags &= ~(os.O_EXCL | os.O_CREAT)
        elif recipe["mode"].startswith("w"):
            flags |= os.O_TRUNC
        # A device or a pipe may hold up whoever opens it, and this loop with it.
        fd = os.open(recipe["path"], flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, int(recipe.get("mask", 0o600)))
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            os.close(fd)
            raise Refused("invalid", what=f"{recipe['path']} is no plain file")
        os.set_blocking(fd, True)
        self.unit.facts["file"] = [about.st_dev, about.st_ino]
        self.unit.facts.update(recipe.get("former") or {})
        return (fd,)


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
    def rebuild(cls, keeper: Any, old: Unit) -> dict[str, Any]:
        return {**old.recipe, "port": old.facts.get("port", old.recipe["port"])}


class Pipe(Descriptor):
    parts = ("out", "in")

    def make(self) -> tuple[int, ...]:
        return os.pipe()


class Socket(Descriptor):
    """A connection that whoever opened it has made, and handed over."""

    @classmethod
    def check(cls, recipe: dict[str, Any]) -> None:
        Listener.check(recipe)

    def make(self) -> tuple[int, ...]:
        if not self.given_fds:
            raise Refused("invalid", what="no connection came along")
        return (os.dup(self.given_fds[0]),)

    @classmethod
    def rebuild(cls, keeper: Any, old: Unit) -> dict[str, Any]:
        raise Refused("no recipe", what="a connection cannot be made again: its other end has seen it end")


KINDS = (
    Kind("file", File, lambda recipe: (recipe.get("path"), recipe.get("mode"))),
    Kind("listener", Listener, lambda recipe: (recipe.get("host"), recipe.get("port"))),
    Kind("pipe", Pipe, lambda recipe: None),
    Kind("socket", Socket, lambda recipe: (recipe.get("host"), recipe.get("port"))),
)
