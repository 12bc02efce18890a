"""Be told at once when another process of this machine ends.

A pidfd becomes readable when its process ends, whoever its parent is. It is opened only for the process that was
meant: its start time is compared after the descriptor is open, so a pid that came back is nobody we watch.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable

from perdure._ground.ids import Process, is_alive_here


class Watch:
    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._fds: dict[Process, int] = {}

    def follow(self, processes: Iterable[Process]) -> None:
        """Watch exactly these, as far as they live on this machine."""
        wanted = set(processes)
        for process in [known for known in self._fds if known not in wanted]:
            self._forget(process)
        for process in wanted - self._fds.keys():
            self._watch(process)

    def _watch(self, process: Process) -> None:
        if not hasattr(os, "pidfd_open") or not is_alive_here(process):
            return
        try:
            fd = os.pidfd_open(process.pid)
        except OSError:
            return  # it has ended, or the system has no such thing; looking finds it too
        if not is_alive_here(process):
            os.close(fd)
            return
        self._fds[process] = fd
        asyncio.get_running_loop().add_reader(fd, self._ended, process)

    def _ended(self, process: Process) -> None:
        self._forget(process)
        self._ring()

    def _forget(self, process: Process) -> None:
        fd = self._fds.pop(process)
        asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)

    def close(self) -> None:
        self.follow(())
