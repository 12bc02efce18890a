"""The keeper's folder on disk, when it is removed while keeper and units live.

The records are in memory too, so the folder is made again with all of them, with the anchor's address, and with a lock
that shows that the anchor lives. The anchor's own lock went with the folder. The anchor is given the new lock to hold,
so the lock outlives this keeper. Output files of programs stay lost; they can be read as long as the programs live.

The folder has an identity, a random text, by which clients tell it from another machine's. It is made again with the
folder, because the records are.

A keeper that starts without its folder has no records. It cannot know the owners of the processes and descriptors it
finds, so it ends them: a process that no client can reach must not continue.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import re
import secrets
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from perdure.keeper.anchor import FORMAT, start_of
from perdure.keeper.core import untrusted
from perdure.keeper.core.clients import access
from perdure.keeper.core.unit_kinds import KeeperCore
from perdure.keeper.process import processes

log = logging.getLogger("perdure.keeper")

LOCK, ANCHOR, IDENTITY = "anchor.lock", "anchor.json", "identity"
_IDENTITY = re.compile("[0-9a-f]{32}")
_NAME = "home-lock"


class Home:
    def __init__(self, keeper: KeeperCore) -> None:
        self._keeper, self._path = keeper, keeper.home
        self._was_missed = False
        self.identity = ""

    @property
    def is_there(self) -> bool:
        return (self._path / LOCK).exists()

    def watch(self) -> None:
        """Called regularly. Acts at the second look: a program that removes the tree must not find a new folder."""
        if self.is_there:
            self._was_missed = False
        elif self._was_missed and self._path.parent.is_dir():
            self.mend()
        else:
            self._was_missed = True

    def look(self) -> None:
        """A client asks for something: it has to find its folder."""
        if not self.is_there:
            self.mend()

    def begin(self) -> None:
        """Claim the folder when the keeper starts. Without records, end everything a former keeper has left."""
        # A keeper whose anchor was killed while it was stopped has descriptors that are called lost.
        former = [pid for pid in _keepers_of(str(self._path)) if pid != os.getpid()]
        processes.kill(iter(former))
        known = {unit.uid for unit in self._keeper.units}
        if not known:
            ended = processes.kill(_sessions_in(self._keeper.live))
            if ended:
                log.error("the records of %d sessions were removed; their processes were ended", ended)
        self.identity = self._known_identity() or secrets.token_hex(16)
        if self.is_there:
            self._write_identity()
            return
        self.mend()
        if not known:
            ended = processes.kill(processes.below(self._keeper.anchor_pid, os.getpid()))
            log.error("the records of units were removed; %d processes that no client can reach were ended", ended)
            for name, _ in list(self._keeper.anchored.names()):
                if "/" in name or name.startswith("token:"):
                    self._keeper.anchored.drop(name)

    def mend(self) -> None:
        """Make the folder again, with the record of each unit."""
        keeper, path = self._keeper, self._path
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            log.error("%s was removed, and now belongs to another user", path)
            return
        path.chmod(0o700)
        if not self._lock():
            log.error("%s was removed, and another anchor has it now", path)
            return
        pid = keeper.anchor_pid
        told = {"format": FORMAT, "live": str(keeper.live), "pid": pid, "start": start_of(pid), "since": time.time()}
        fresh = path / f"{ANCHOR}.new"
        fresh.write_text(json.dumps(told), encoding="utf-8")
        fresh.replace(path / ANCHOR)
        self._write_identity()
        keeper.units.write_again()
        self._was_missed = False
        log.warning("%s was removed, and was made again with %d units", path, sum(1 for _ in keeper.units))

    def _known_identity(self) -> str:
        try:
            found = untrusted.read_text(self._path / IDENTITY, 100)
        except (OSError, ValueError):
            return ""
        return found if _IDENTITY.fullmatch(found) else ""

    def _write_identity(self) -> None:
        if self._known_identity() != self.identity:
            try:
                untrusted.write(self._path / IDENTITY, self.identity.encode(), through_power_loss=True)
            except OSError as error:  # the next keeper is then another one to its clients
                log.error("%s has no identity: %s", self._path, error)

    def _lock(self) -> bool:
        lock = os.open(self._path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._keeper.anchored.put(_NAME, lock)
        except BlockingIOError:
            return False
        finally:
            os.close(lock)
        return True


def _sessions_in(live: Path) -> Iterator[int]:
    """The processes that hold sessions in this folder, by their socket. One whose anchor was killed has no known
    parent; only its socket shows it."""
    for control in live.glob("*/control"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as link:
            link.settimeout(1.0)
            link.connect(str(control))
            pid, uid = access.peer_of(link)
            if uid == os.getuid() and any("perdure.keeper." in part for part in processes.command_of(pid)):
                yield pid


def _keepers_of(home: str) -> Iterator[int]:
    """Every process that is a keeper of this home, by its command line: daemon.main is given its home.

    The first process of an isolated unit was forked by a keeper and has its name, but a namespace of its own.
    """
    for pid in processes.all_pids():
        command = processes.command_of(pid)
        is_keeper = (
            len(command) > 3 and command[-3] == home and any("perdure.keeper.daemon" in part for part in command)
        )
        if is_keeper and not processes.is_in_inner_namespace(pid):
            yield pid
