"""The keeper's side of the anchor: descriptors that outlive the keeper, and exit statuses.

Calls wait for the answer. The anchor does nothing but answer, and the next step (starting a process, telling a
client) must not begin before the anchor holds everything the next keeper needs to take over.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from perdure.keeper.anchor import receive, send


class Exit(NamedTuple):
    pid: int
    start: int
    status: int


class AnchorGone(Exception):
    """The anchor has ended, so the keeper ends too."""


class NotHeld(KeyError):
    """The anchor has no descriptor of this name."""


class Anchored:
    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self._exits: deque[Exit] = deque()
        # Called when an exit was told while an answer was waited for: the link will not become readable for it again.
        self.told: Callable[[], object] = lambda: None

    def put(self, name: str, fd: int, about: object = None) -> None:
        """Have the anchor hold a descriptor too, under a name, replacing its former one."""
        self._ask({"do": "put", "name": name, "about": about}, fd)

    def get(self, name: str) -> tuple[int, Any]:
        """A held descriptor, and its description.

        Raises:
            NotHeld: nothing is held under this name.
        """
        answer, fd = self._ask({"do": "get", "name": name})
        if fd is None:
            raise NotHeld(name)
        os.set_inheritable(fd, False)
        return fd, answer.get("about")

    def drop(self, name: str) -> None:
        self._ask({"do": "drop", "name": name})

    def names(self) -> Iterator[tuple[str, Any]]:
        yield from self._ask({"do": "names"})[0]["names"].items()

    def watch(self, pid: int, start: int) -> None:
        """Have this process's exit status kept; call it before the process can end."""
        self._ask({"do": "watch", "pid": pid, "start": start})

    def forget(self, pid: int, start: int) -> None:
        self._ask({"do": "forget", "pid": pid, "start": start})

    def exits(self) -> list[Exit]:
        """Every exit that is kept, told before or not."""
        return [Exit(*one) for one in self._ask({"do": "exits"})[0]["exits"]]

    def replace(self, argv: list[str]) -> None:
        """Set the command that the anchor runs when this keeper has ended."""
        self._ask({"do": "keeper", "argv": argv})

    def stop(self) -> None:
        with contextlib.suppress(OSError):  # it ends faster than one can say so
            send(self.link, {"do": "stop"})

    def hear(self) -> list[Exit]:
        """The exits the anchor has told; call it when the link is readable, and when `told` was called.

        Raises:
            AnchorGone: it has ended.
        """
        while _has_more(self.link):
            self._take()
        told = list(self._exits)
        self._exits.clear()
        return told

    def _ask(self, question: dict[str, Any], fd: int | None = None) -> tuple[dict[str, Any], int | None]:
        try:
            send(self.link, question, fd)
        except OSError as error:
            raise AnchorGone from error
        while (taken := self._take()) is None:
            pass
        return taken

    def _take(self) -> tuple[dict[str, Any], int | None] | None:
        try:
            message, fd = receive(self.link)
        except (OSError, EOFError) as error:
            raise AnchorGone from error
        if "exit" in message:
            self._exits.append(Exit(*message["exit"]))
            self.told()
            return None
        return message, fd


def _has_more(link: socket.socket) -> bool:
    try:
        return bool(link.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)) or _gone()
    except BlockingIOError:
        return False


def _gone() -> bool:
    raise AnchorGone
