"""Start a process that belongs to the anchor, not to the keeper, and that begins only when it is safe.

The process is forked twice: its parent ends at once, so that the anchor adopts it and gets its exit status. It
then waits at a gate. The keeper learns its pid, hands its descriptors to the anchor, writes its record, and
opens the gate. If the keeper dies before that, the gate closes and the process ends without having begun, so no
process exists without a record.

The process has its own session, default signal dispositions, the descriptors it is given and no others; by choice it
is isolated (isolation.py).
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import struct
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from perdure.keeper.anchor import start_of
from perdure.keeper.process import isolation
from perdure.keeper.process.isolation import Isolation

_NUMBER = struct.Struct("i")
# Where a started process finds its token.
TOKEN_FD = 3
_MOST_FDS = 1 << 16


class CannotStart(Exception):
    """The program could not be executed; nothing runs."""


@dataclass(frozen=True)
class Program:
    """The program to execute, with its arguments, environment and descriptors."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    umask: int = 0o022
    most_files: int = 1024
    isolation: Isolation | None = None


@dataclass
class Waiting:
    """A process at the gate."""

    pid: int
    start: int
    _gate: int
    _trouble: int

    def go(self) -> None:
        """Let it begin.

        Raises:
            CannotStart: the program is not there, may not be executed, or its folder is gone.
        """
        with suppress(BrokenPipeError):  # it has ended already, and said why
            os.write(self._gate, b"!")
        os.close(self._gate)
        self._hear()

    def fail(self) -> NoReturn:
        """It was never there; say why."""
        os.close(self._gate)
        self._hear()
        raise CannotStart("no process could be made")

    def _hear(self) -> None:
        with os.fdopen(self._trouble, "rb") as trouble:
            said = trouble.read()
        if said:
            raise CannotStart(said.decode(errors="replace"))

    def give_up(self) -> None:
        """It ends without having begun."""
        os.close(self._gate)
        os.close(self._trouble)


def spawn(command: Program, stdio: tuple[int, int, int], *, is_terminal: bool, token: int | None = None) -> Waiting:
    """A process at the gate. Its descriptors 0, 1, 2 are `stdio`; TOKEN_FD is its token, if it gets one."""
    gate_in, gate_out = os.pipe()
    told_in, told_out = os.pipe()
    trouble_in, trouble_out = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            if command.isolation is not None:
                isolation.leave()
            if child := os.fork():
                os.write(told_out, _NUMBER.pack(child))
                os._exit(0)
            os.close(gate_out)  # else the gate would never close
            if command.isolation is not None:
                _isolate(command.isolation)
            _begin(command, stdio, is_terminal, token, gate_in, trouble_out)
        except isolation.NotAllowed as error:
            os.write(trouble_out, str(error).encode())
        finally:
            os._exit(127)
    for fd in (gate_in, told_out, trouble_out):
        os.close(fd)
    os.waitpid(middle, 0)
    told = os.read(told_in, _NUMBER.size)
    os.close(told_in)
    pid = _NUMBER.unpack(told)[0] if told else 0
    waiting = Waiting(pid, start_of(pid), gate_out, trouble_in)
    if not told:
        waiting.fail()
    return waiting


def _isolate(how: Isolation) -> None:
    """Continue as the second process of a namespace; the first one stays to reap orphans."""
    os.setsid()
    isolation.settle(how)
    if child := os.fork():
        isolation.be_first(child)
    isolation.give_up_rights()


def _begin(
    command: Program, stdio: tuple[int, int, int], is_terminal: bool, token: int | None, gate: int, trouble: int
) -> NoReturn:
    os.setsid()
    if not os.read(gate, 1):
        os._exit(0)
    trouble = _arrange(stdio, token, trouble)
    try:
        if is_terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        _forget_ways()
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = command.most_files if hard == resource.RLIM_INFINITY else min(command.most_files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        os.umask(command.umask)
        os.chdir(command.cwd)
        os.execvpe(command.argv[0], list(command.argv), dict(command.env))
    except BaseException as error:
        os.write(trouble, _in_words(error, command).encode(errors="replace"))
    os._exit(127)


def _in_words(error: BaseException, command: Program) -> str:
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    is_folder = error.filename is not None and os.fsdecode(error.filename) == command.cwd
    return f"{error.strerror}: {command.cwd if is_folder else command.argv[0]}"


def _forget_ways() -> None:
    """Python ignores some signals, and so would the program."""
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _arrange(stdio: tuple[int, int, int], token: int | None, trouble: int) -> int:
    """Exactly 0, 1, 2, the token, and the pipe for trouble, which closes when the program is executed."""
    # First up, out of the way of the numbers they will have.
    wanted = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (*stdio, *(() if token is None else (token,)))]
    up = fcntl.fcntl(trouble, fcntl.F_DUPFD_CLOEXEC, 20)
    for target, fd in enumerate(wanted):
        os.dup2(fd, target)
    last = os.dup2(up, len(wanted), inheritable=False)
    os.closerange(last + 1, _MOST_FDS)
    return last
