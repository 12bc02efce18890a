"""Notice at once when another process on this machine ends.

A pidfd becomes readable when its process ends, even if that process is not our child. The start time is compared
after the pidfd was opened, so a new process that reuses the pid is not watched by mistake.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable

from perdure._ground.ids import Process, is_alive_here


class ProcessWatch:
    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._fds: dict[Process, int] = {}

    def follow(self, processes: Iterable[Process]) -> None:
        """Watch exactly these processes, as far as they are alive on this machine."""
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
            return  # it has ended, or the system lacks pidfds; the reaper's next round notices it too
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
