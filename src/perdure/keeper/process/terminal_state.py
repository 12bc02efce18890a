"""The state of a terminal, seen from its master side: the foreground process, and whether it waits for input."""

from __future__ import annotations

import fcntl
import struct
import sys
import termios
from typing import Literal, NamedTuple

from perdure.keeper.process import processes

# Kernel functions in which a process sleeps while it reads from a terminal.
_READING = frozenset({"n_tty_read", "wait_woken", "tty_read"})
# … and where one sleeps that waits for any of several things, as line editors do.
_CHOOSING = frozenset({"do_select", "do_sys_poll", "poll_schedule_timeout", "ep_poll", "do_epoll_wait"})

_TIOCGSID = 0x5429  # Linux's; termios does not name it

Waiting = Literal["secret", "prompt"]


class Mode(NamedTuple):
    echo: bool
    lines: bool  # the terminal gives whole lines (canonical mode); line editors switch that off

    @property
    def is_secret(self) -> bool:
        """A password is being asked for."""
        return self.lines and not self.echo


def mode(master: int) -> Mode:
    local = termios.tcgetattr(master)[3]
    return Mode(bool(local & termios.ECHO), bool(local & termios.ICANON))


def in_front(master: int) -> int:
    """The process group that may read from the terminal; 0 when there is none."""
    try:
        found: int = struct.unpack("i", fcntl.ioctl(master, termios.TIOCGPGRP, b"\0" * 4))[0]
    except OSError:
        return 0
    return found


def leader(master: int) -> int:
    """The first process of the terminal's session; 0 when there is none, or the system does not tell."""
    if sys.platform != "linux":
        return 0
    try:
        found: int = struct.unpack("i", fcntl.ioctl(master, _TIOCGSID, b"\0" * 4))[0]
    except OSError:
        return 0
    return found


def resize(master: int, rows: int, columns: int) -> None:
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def size(master: int) -> tuple[int, int]:
    rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(master, termios.TIOCGWINSZ, b"\0" * 8))
    return rows, columns


def waits_for(master: int) -> Waiting | None:
    """The kind of input that the foreground process waits for.

    "secret" is certain: echo is off in line mode. "prompt" means that a process in front sleeps while reading
    from a terminal, or, with line mode off (a REPL, an editor), while it waits for anything at all. For another
    user's process, such as sudo's, only the first can be seen.
    """
    now = mode(master)
    if now.is_secret:
        return "secret"
    group = in_front(master)
    places = {processes.sleeps_in(pid) for pid in processes.of_group(group)} if group else set()
    if places & _READING or (not now.lines and places & _CHOOSING):
        return "prompt"
    return None
