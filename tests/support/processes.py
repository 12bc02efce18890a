"""Real processes that can be stopped, killed and asked what they saw.

Children are forked from a nursery: one warm process that has imported perdure, runs a single thread and
has opened no store. So a child costs a few milliseconds, and inherits nothing that a user's process
would not have.

    pytest ── control ── nursery ── fork ── child
       └──────────── link (pickled messages) ──┘

A child runs `function(link, *arguments)`, a plain or an async function of an importable module. What it
returns or raises is its last message. Waiting is for messages and exits, never for time; PATIENCE only
turns a hang into an error.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import contextlib
import ctypes
import faulthandler
import fcntl
import inspect
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    Link: TypeAlias = Connection[Any, Any]
else:
    Link = Connection

PATIENCE = 120.0
_TELLING = 1.0  # seconds a process has to print its stacks
ROOT = Path(__file__).parents[2]
# What every child needs; imported once, by the nursery.
_WARM = (
    "pytest",
    "perdure",
    "perdure._store.sqlite",
    "perdure._store.postgres",
    "tests.torture.kills",
    "tests.torture.hostile_programs",
    "tests.sessions.acts",
    "tests.sessions.kit",
    "tests.honesty.agent",
    "perdure._worker",
)
_LENGTH = struct.Struct("<I")


class ChildDied(Exception):
    """The child ended without saying what was waited for."""


class Child:
    """One process, by its pid and its link."""

    def __init__(self, nursery: Nursery, pid: int, link: Link) -> None:
        self._nursery, self.pid, self._link = nursery, pid, link
        self._status: int | None = None

    def heard(self) -> Any:
        """The next thing the child says.

        Raises:
            ChildDied: it ended instead.
            Exception: the one the child ended with.
        """
        try:
            if not self._link.poll(PATIENCE):
                raise TimeoutError(f"child {self.pid} has said nothing for {PATIENCE:.0f} s")
            kind, value = self._link.recv()
        except (EOFError, ConnectionResetError):
            raise ChildDied(f"child {self.pid} ended with status {self.wait()}") from None
        if kind == "raised":
            raise value
        return value

    def tell(self, message: object = None) -> None:
        self._link.send(message)

    def ask(self, message: object = None) -> Any:
        self.tell(message)
        return self.heard()

    def kill(self) -> None:
        """SIGKILL, and wait until it has ended."""
        self.end()
        self.wait()

    def end(self) -> None:
        """SIGKILL, without waiting."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def tell_stacks_and_end(self) -> None:
        """It hangs: have it print its stacks, and kill it."""
        self.tell_stacks()
        self._status = self._nursery.ask("wait", (self.pid, _TELLING))
        self.kill()

    def stop(self) -> None:
        """SIGSTOP, and wait until it stands still, or has ended."""
        if self._status is not None:
            return
        os.kill(self.pid, signal.SIGSTOP)
        status: int = self._nursery.ask("stopped", self.pid)
        if not os.WIFSTOPPED(status):
            self._status = os.waitstatus_to_exitcode(status)

    def go_on(self) -> None:
        if self._status is None:
            os.kill(self.pid, signal.SIGCONT)

    def wait(self) -> int:
        """Its exit status once it has ended; minus the signal that ended it.

        Raises:
            TimeoutError: it did not end in time. It has printed its stacks and was killed.
        """
        if self._status is None and (status := self._nursery.ask("wait", (self.pid, PATIENCE))) is not None:
            self._status = status
        if self._status is None:
            self.tell_stacks_and_end()
            raise TimeoutError(f"child {self.pid} has not ended for {PATIENCE:.0f} s")
        return self._status

    def tell_stacks(self) -> None:
        """Have it print its stacks."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGUSR1)

    def rest(self) -> list[Any]:
        """All that is still to be heard from a child that has ended."""
        found = []
        with contextlib.suppress(ChildDied):
            while True:
                found.append(self.heard())
        return found

    def bury(self) -> None:
        self.kill()
        self._link.close()


class Nursery:
    """The warm process that children are forked from."""

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        ours, theirs = socket.socketpair()
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **(env or {})}
        environ.pop("PERDURE_TEST_CLOCK", None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.processes", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
            env=environ,
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._control = ours
        self._turn = threading.Lock()
        self._children: list[Child] = []
        alive.add(self)

    def start(self, function: Callable[..., Any], *arguments: Any, env: Mapping[str, str] | None = None) -> Child:
        """Fork a child that runs `function(link, *arguments)`."""
        ours, theirs = socket.socketpair()
        name = (function.__module__, function.__qualname__)
        with theirs:
            pid = self.ask("fork", (name, arguments, dict(env or {})), theirs.fileno())
        child = Child(self, pid, Link(ours.detach()))
        self._children.append(child)
        return child

    def run(self, function: Callable[..., Any], *arguments: Any, env: Mapping[str, str] | None = None) -> Any:
        """What `function` returns in a process of its own."""
        child = self.start(function, *arguments, env=env)
        try:
            return child.heard()
        except TimeoutError:
            child.tell_stacks_and_end()
            raise
        finally:
            child.wait()

    def ask(self, verb: str, value: object, fd: int | None = None) -> Any:
        with self._turn:
            body = pickle.dumps((verb, value))
            fds = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
            self._control.sendmsg([_LENGTH.pack(len(body))], fds)
            self._control.sendall(body)
            return pickle.loads(_read(self._control, _LENGTH.unpack(_read(self._control, 4))[0]))

    @contextlib.contextmanager
    def clearing(self) -> Iterator[None]:
        """No child that is started in this block outlives it."""
        before = len(self._children)
        try:
            yield
        finally:
            # All of them first: another thread may still wait for one, and the nursery then hears nothing else.
            for child in self._children[before:]:
                child.end()
            for child in self._children[before:]:
                child.bury()
            del self._children[before:]

    def tell_stacks(self) -> None:
        """Have every living child print its stacks: something hangs, and this is how one finds out what."""
        for child in self._children:
            child.tell_stacks()

    def end_children(self) -> None:
        """Kill them without waiting, from another thread than the one that waits for them."""
        for child in list(self._children):
            child.end()

    def close(self) -> None:
        alive.discard(self)
        self._control.close()
        self._process.wait()


alive: set[Nursery] = set()
_nursery: Nursery | None = None


@contextlib.contextmanager
def nursery() -> Iterator[Nursery]:
    """This process's nursery; no child that is started in this block outlives it."""
    global _nursery
    if _nursery is None:
        _nursery = Nursery()
        atexit.register(_nursery.close)
    with _nursery.clearing():
        yield _nursery


@contextlib.contextmanager
def nursery_in(env: Mapping[str, str]) -> Iterator[Nursery]:
    """A nursery of its own, for children whose very libraries see another world."""
    own = Nursery(env)
    try:
        with own.clearing():
            yield own
    finally:
        own.close()


@contextlib.contextmanager
def starting_gun(path: Path) -> Iterator[None]:
    """Whoever calls `at_the_gun(path)` waits until this block ends; then all go at once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def at_the_gun(path: Path) -> None:
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)


# ── in the nursery ───────────────────────────────────────────────────────────────────────────────


def _read(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = source.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def _serve(control: socket.socket) -> None:
    for name in (*_WARM, *os.environ.get("PERDURE_TEST_WARM", "").split()):
        with contextlib.suppress(ImportError):
            import_module(name)
    while True:
        head, fds = _head(control)
        if not head:
            return
        verb, value = pickle.loads(_read(control, _LENGTH.unpack(head)[0]))
        if verb == "fork":
            answer: Any = os.fork()
            if answer == 0:
                control.close()
                _be_child(fds[0], *value)
            os.close(fds[0])
        elif verb == "stopped":
            answer = _stopped(control, value)
        else:
            answer = _ended(control, *value)
        body = pickle.dumps(answer)
        control.sendall(_LENGTH.pack(len(body)) + body)


def _stopped(control: socket.socket, pid: int) -> int:
    """The status of a child that stands still or has ended."""
    while True:
        found, status = os.waitpid(pid, os.WUNTRACED | os.WNOHANG)
        if found:
            return status
        _look_after(control, 0.001)


def _ended(control: socket.socket, pid: int, seconds: float) -> int | None:
    """The exit status of a child; None if it has not ended in so many seconds."""
    running = os.pidfd_open(pid)
    try:
        if not _look_after(control, seconds, running):
            return None
    finally:
        os.close(running)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _look_after(control: socket.socket, seconds: float, *fds: int) -> bool:
    """True if one of these becomes readable.

    Raises:
        EOFError: the test process has died, and the nursery with its children must not outlive it.
    """
    ready, _, _ = select.select([control.fileno(), *fds], [], [], seconds)
    if control.fileno() in ready:  # it asks nothing before it has the answer
        raise EOFError
    return bool(ready)


def _head(control: socket.socket) -> tuple[bytes, list[int]]:
    head, extra, _, _ = control.recvmsg(4, socket.CMSG_SPACE(4))
    fds = array.array("i")
    for _level, _type, data in extra:
        fds.frombytes(data[:4])
    return head, list(fds)


def _be_child(fd: int, name: tuple[str, str], arguments: tuple[Any, ...], env: dict[str, str]) -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: never outlive the nursery
    _be_ready_to_tell_stacks()
    os.environ.update(env)
    link = Link(fd)
    try:
        function = getattr(import_module(name[0]), name[1])
        result = function(link, *arguments)
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        last = ("returned", result)
    except BaseException as error:
        error.add_note(traceback.format_exc())
        last = ("raised", error)
    with contextlib.suppress(BrokenPipeError):
        link.send(last)
    os._exit(0)


def _be_ready_to_tell_stacks() -> None:
    """On SIGUSR1 all stacks go to stderr: those of threads, and of whatever the event loop has under way."""
    faulthandler.enable()

    def tell(*_: object) -> None:
        with contextlib.suppress(RuntimeError):
            for task in asyncio.all_tasks():
                task.print_stack()
                # The innermost coroutine is what it waits for; print_stack shows the outermost.
                inner: Any = task.get_coro()
                while inner is not None:
                    print(f"    in {inner!r}", file=sys.stderr)
                    inner = getattr(inner, "cr_await", None)

    signal.signal(signal.SIGUSR1, tell)
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=True)


def say(link: Link, value: object = None) -> None:
    """A child's message to the test."""
    link.send(("said", value))


def die() -> None:
    """kill -9, by the process itself: nothing runs after this line."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    with contextlib.suppress(EOFError):
        _serve(socket.socket(fileno=int(sys.argv[1])))
