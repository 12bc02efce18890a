"""The small process under the keeper that never needs replacing.

It holds what would be lost with a process: the listening socket, so that connections queue while the keeper is
replaced; descriptors by name (terminals, logs, sockets); exit statuses of watched processes, as the subreaper of
all that units leave behind. It starts the keeper, and starts it again when it ends, or was stopped and stays so.
Run as a file (`python -I -S anchor.py CONFIG`), it imports nothing of perdure and lives as long as the machine is
up; so what keeper and anchor say to each other is frozen. A message is a length of four bytes, big-endian, and
JSON; at most one descriptor rides on it. The keeper asks, the anchor answers in order:

    {"do": "put", "name", "about"} + fd   {}             under a new name, or instead of what was there
    {"do": "get", "name"}                 {"about"} + fd
    {"do": "drop", "name"}                {}             closes it
    {"do": "names"}                       {"names": {name: about, …}}
    {"do": "watch", "pid", "start"}       {}             keep its exit status
    {"do": "exits"}                       {"exits": [[pid, start, status], …]}
    {"do": "forget", "pid", "start"}      {}             the keeper has written the status down
    {"do": "keeper", "argv"}              {}             what to start the next time
    {"do": "stop"}                        nothing: it ends
    what cannot be done                   {"error": …};   {"exit": [pid, start, status]} comes unasked
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import selectors
import signal
import socket
import struct
import sys
import time
from typing import Any

FORMAT, _LENGTH = 1, struct.Struct(">I")
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
# A keeper that lived so long was well, else it is started again after a growing pause; stopped so long, it is ended.
_WELL_SECONDS, _LONGEST_PAUSE, _STOPPED_SECONDS = 0.3, 1.0, 5.0


class Anchor:
    def __init__(self, home: str, live: str, argv: list[str]) -> None:
        self.home, self.argv = home, argv
        self.store: dict[str, tuple[Any, int]] = {}
        self.watched: dict[tuple[int, int], int | None] = {}
        self.keeper, self.started, self.pause, self.stopped = 0, 0.0, 0.0, 0.0
        self.link: socket.socket | None = None
        self.selector = selectors.DefaultSelector()
        path = os.path.join(live, "sock")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        os.chmod(path, 0o600)
        self.listener.listen(128)
        self.bell, ring = os.pipe()
        os.set_blocking(ring, False)
        signal.set_wakeup_fd(ring)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(self.bell, selectors.EVENT_READ)

    def live(self) -> None:
        """Until it is told to stop."""
        while True:
            until = self.stopped + _STOPPED_SECONDS if self.keeper else self.started + self.pause
            rest = max(0.0, until - time.monotonic())
            if not self.keeper and not rest:
                self.start_keeper()
            elif self.stopped and not rest:
                os.kill(self.keeper, signal.SIGKILL)
            for key, _ in self.selector.select(rest if self.stopped or not self.keeper else None):
                if key.fileobj is self.link:
                    self.answer()
                else:
                    os.read(self.bell, 4096)
                    self.reap()

    def start_keeper(self) -> None:
        self.link, theirs = socket.socketpair()
        self.started = time.monotonic()
        self.keeper = os.fork()
        if not self.keeper:
            self._become_keeper(theirs)
        theirs.close()
        self.selector.register(self.link, selectors.EVENT_READ)

    def _become_keeper(self, link: socket.socket) -> None:
        fds = (link.fileno(), self.listener.fileno())
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in fds:
                os.set_inheritable(fd, True)
            os.execv(self.argv[0], [*self.argv, self.home, *map(str, fds)])
        except BaseException as error:
            os.write(2, f"anchor: {self.argv[0]} does not start: {error}\n".encode())
        os._exit(127)

    def keeper_ended(self) -> None:
        self.keeper, self.stopped = 0, 0.0
        while self.link is not None:  # its last message still counts: a descriptor on its way is not lost
            self.answer()
        lived = time.monotonic() - self.started
        self.pause = 0.0 if lived >= _WELL_SECONDS else min(max(self.pause * 2, 0.01), _LONGEST_PAUSE)

    def hang_up(self, link: socket.socket) -> None:
        self.selector.unregister(link)
        link.close()
        self.link = None
        if self.keeper:
            os.kill(self.keeper, signal.SIGKILL)  # it has closed its end, or sends something unreadable

    def reap(self) -> None:
        while True:
            found = None
            with contextlib.suppress(ChildProcessError):
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WSTOPPED | os.WCONTINUED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                return
            start = start_of(found.si_pid)  # while it is still there to be asked
            pid, status = os.waitpid(found.si_pid, os.WUNTRACED | os.WCONTINUED)
            if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):  # a unit may be silent, for as long as it likes
                if pid == self.keeper:
                    self.stopped = time.monotonic() if os.WIFSTOPPED(status) else 0.0
            elif pid == self.keeper:
                self.keeper_ended()
            elif (pid, start) in self.watched:
                self.watched[pid, start] = status
                self.say({"exit": [pid, start, status]})

    def answer(self) -> None:
        assert self.link is not None
        try:
            asked, fd = receive(self.link)
        except (OSError, ValueError, EOFError):
            return self.hang_up(self.link)
        try:
            self.say(*self.do(asked, fd))
        except (KeyError, TypeError) as error:
            self.say({"error": f"{type(error).__name__}: {error}"})

    def do(self, asked: dict[str, Any], fd: int | None) -> tuple[dict[str, Any], int | None]:
        match asked:
            case {"do": "put", "name": name} if fd is not None:
                self.drop(name)
                self.store[name] = (asked.get("about"), fd)
            case {"do": "get", "name": name}:
                return {"about": self.store[name][0]}, self.store[name][1]
            case {"do": "drop", "name": name}:
                self.drop(name)
            case {"do": "names"}:
                return {"names": {name: about for name, (about, _) in self.store.items()}}, None
            case {"do": "watch", "pid": pid, "start": start}:
                self.watched[pid, start] = None
            case {"do": "exits"}:
                return {"exits": [[*who, status] for who, status in self.watched.items() if status is not None]}, None
            case {"do": "forget", "pid": pid, "start": start}:
                self.watched.pop((pid, start), None)
            case {"do": "keeper", "argv": argv}:
                self.argv = [str(part) for part in argv]
            case {"do": "stop"}:
                os._exit(0)
            case _:
                return {"error": "not understood", "format": FORMAT}, None
        return {}, None

    def drop(self, name: str) -> None:
        if name in self.store:
            os.close(self.store.pop(name)[1])

    def say(self, message: dict[str, Any], fd: int | None = None) -> None:
        if self.link is not None:
            with contextlib.suppress(OSError):  # it has gone, or hangs; its end will be noticed
                send(self.link, message, fd)


def send(link: socket.socket, message: dict[str, Any], fd: int | None = None) -> None:
    body = json.dumps(message).encode()
    data = _LENGTH.pack(len(body)) + body
    sent = socket.send_fds(link, [data], [] if fd is None else [fd])
    link.sendall(data[sent:])


def receive(link: socket.socket) -> tuple[dict[str, Any], int | None]:
    head, fds, _, _ = socket.recv_fds(link, _LENGTH.size, 1, socket.MSG_WAITALL)
    if len(head) < _LENGTH.size:
        raise EOFError
    body = link.recv(_LENGTH.unpack(head)[0], socket.MSG_WAITALL)
    return json.loads(body), fds[0] if fds else None


def start_of(pid: int) -> int:
    """When a process was started, in clock ticks since boot; with its pid, who it is. 0 where /proc is not."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])
    return 0


def _say_where(home: str, live: str) -> None:
    path, me = os.path.join(home, "anchor.json"), os.getpid()
    with open(f"{path}.new", "w", encoding="utf-8") as out:
        json.dump({"format": FORMAT, "live": live, "pid": me, "start": start_of(me), "since": time.time()}, out)
    os.replace(f"{path}.new", path)


def _stand_alone(home: str) -> int:
    """Leave the session and all descriptors of the starting process; the descriptor for "ready" is given."""
    heard, ready = os.pipe()
    if os.fork():  # the first of three processes waits until the third is ready, and reports how it went
        os.close(ready)
        os._exit(0 if os.read(heard, 1) else 1)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    os.umask(0o077)
    os.dup2(ready, 3, inheritable=False)
    os.closerange(4, 65536)
    log = os.open(os.path.join(home, "keeper.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target, fd in enumerate((os.open(os.devnull, os.O_RDWR), log, log)):
        os.dup2(fd, target)
    return 3


def main(config: str) -> None:
    home, live, argv = (json.loads(config)[name] for name in ("home", "live", "keeper"))
    ready = _stand_alone(home)
    lock = os.open(os.path.join(home, "anchor.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # another was quicker, and will be found
        os._exit(os.write(ready, b"!") - 1)
    if sys.platform == "linux":
        for option, value in ((_PR_SET_CHILD_SUBREAPER, 1), (_PR_SET_DUMPABLE, 0)):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(ValueError, OSError):  # two descriptors a unit and more
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    anchor = Anchor(home, live, argv)
    _say_where(home, live)
    os.write(ready, b"!")
    os.close(ready)
    anchor.live()


if __name__ == "__main__":
    main(sys.argv[1])
