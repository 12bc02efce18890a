"""Names: the ids people choose, the uids we make, and who a process is.

A uid is 24 characters: 48 bits of time, 72 random bits, in an alphabet whose order is the order of
the bits, so newer uids sort after older ones. A process is known by boot id, pid namespace, pid and
start time: a pid alone comes back as somebody else.
"""

from __future__ import annotations

import getpass
import os
import socket
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from perdure.errors import InvalidId

MAX_ID = 200
_ALPHABET = "0123456789abcdefghijklmnopqrstuv"
_UID_LENGTH = 24


_NOISE = 13
_noise: list[bytes] = []
_last = 0
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]


def new_uid(now_ms: int) -> str:
    """A name nobody else has; those of one process rise, also within a millisecond."""
    global _last
    noise = _next_noise()
    bits = (now_ms & 0xFFFF_FFFF_FFFF) << 72 | int.from_bytes(noise[:9])
    if bits <= _last and bits >> 72 == _last >> 72:
        bits = _last + 1 + int.from_bytes(noise[9:])
    _last = bits
    pairs = _PAIRS
    return (
        f"{pairs[bits >> 110 & 1023]}{pairs[bits >> 100 & 1023]}{pairs[bits >> 90 & 1023]}{pairs[bits >> 80 & 1023]}"
        f"{pairs[bits >> 70 & 1023]}{pairs[bits >> 60 & 1023]}{pairs[bits >> 50 & 1023]}{pairs[bits >> 40 & 1023]}"
        f"{pairs[bits >> 30 & 1023]}{pairs[bits >> 20 & 1023]}{pairs[bits >> 10 & 1023]}{pairs[bits & 1023]}"
    )


def is_uid(text: str) -> bool:
    """Whether it has the form of what `new_uid` makes."""
    return len(text) == _UID_LENGTH and all(character in _ALPHABET for character in text)


def _next_noise() -> bytes:
    """Random bytes nobody else gets. Many are fetched at once: a fetch lets other threads run first."""
    try:
        return _noise.pop()
    except IndexError:
        fetched = os.urandom(_NOISE * 1024)
        _noise.extend(fetched[at : at + _NOISE] for at in range(_NOISE, len(fetched), _NOISE))
        return fetched[:_NOISE]


# The child of a fork must not use the same ones as its parent.
os.register_at_fork(after_in_child=_noise.clear)


def check_id(value: object, what: str = "task id") -> str:
    """The id, if a person can type it, read it and find it again.

    Raises:
        InvalidId: it is empty, too long, or has characters nobody sees.
    """
    if not isinstance(value, str):
        raise InvalidId(f"a {what} is a str, not {type(value).__name__}")
    if not value:
        raise InvalidId(f"the {what} is empty", do="choose a name that says what the task is about")
    if len(value) > MAX_ID:
        raise InvalidId(f"the {what} has {len(value):,} characters; at most {MAX_ID} are allowed")
    if value != value.strip():
        raise InvalidId(f"the {what} {value!r} begins or ends with white space")
    if value.isascii() and value.isprintable():
        return value
    hidden = next((c for c in value if unicodedata.category(c) in _HIDDEN), None)
    if hidden is not None:
        raise InvalidId(f"the {what} has the invisible character {hidden!r}", do="use letters, digits and punctuation")
    return value


# Control, format, surrogate, private use, unassigned, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class Process(NamedTuple):
    """Who a process is, for as long as it lives and after."""

    host: str
    boot_id: str
    pid_ns: str
    pid: int
    start: int


def this_process() -> Process:
    pid = os.getpid()
    return Process(socket.gethostname(), boot_id(), pid_ns(), pid, _start_of(pid) or 0)


def is_proven_dead(other: Process, *, same_machine: bool) -> bool:
    """Whether that process has certainly ended; False when we cannot know.

    `same_machine` says that the other process can only have run here (a local file is the store), so
    another boot id means that the machine was restarted since.
    """
    here = boot_id()
    if not here or not other.boot_id:
        return False
    if other.boot_id != here:
        return same_machine
    return other.pid_ns == pid_ns() and (other.start == 0 or _start_of(other.pid) != other.start)


def is_alive_here(other: Process) -> bool:
    """Whether that very process lives now, in this pid namespace of this machine."""
    if not other.boot_id or other.boot_id != boot_id() or other.pid_ns != pid_ns():
        return False
    return other.start != 0 and _start_of(other.pid) == other.start


@lru_cache(maxsize=1)
def user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


@lru_cache(maxsize=1)
def boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def pid_ns() -> str:
    """The namespace in which this process's pids mean something; a container has one of its own."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _start_of(pid: int) -> int | None:
    """The process's start in clock ticks since boot; None when it has ended (a zombie has)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
