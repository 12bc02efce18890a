"""Names: the ids people choose, the uids we make, and who a process is.

A uid is 24 characters: 48 bits of time, 70 random bits, in an alphabet whose order is the order of the bits, so newer
uids sort after older ones. A process is known by boot id, pid namespace, pid and start time: a pid alone can be reused.
"""

from __future__ import annotations

import os
import socket
import unicodedata
from base64 import b32hexencode
from functools import lru_cache
from typing import NamedTuple

from perdure.errors import InvalidId

MAX_ID = 200
_ALPHABET = "0123456789abcdefghijklmnopqrstuv"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_UID_LENGTH = 24


# The milliseconds, two bits of nothing, and 70 random bits: five to a character.
_STAMP, _TAIL = 10, 14
_TAIL_BITS = 5 * _TAIL
_stamp = (0, "0" * _STAMP)
_last = ""
_tails: list[str] = []


def new_uid(now_ms: int) -> str:
    """A unique name; those of one process rise, also within a millisecond."""
    global _stamp, _last
    moment, stamp = _stamp
    if moment != now_ms:
        stamp = _spelled((now_ms & 0xFFFF_FFFF_FFFF) << 2, _STAMP)
        _stamp = now_ms, stamp
    try:
        uid = stamp + _tails.pop()
    except IndexError:
        uid = stamp + _more_tails()
    if uid <= _last and _last.startswith(stamp):
        uid = stamp + _after(_last[_STAMP:])
    _last = uid
    return uid


def least_uid(ms: int) -> str:
    """A text that no uid of this millisecond, or of a later one, sorts before."""
    return _spelled((max(ms, 0) & 0xFFFF_FFFF_FFFF) << 2, _STAMP)


def _spelled(number: int, length: int) -> str:
    """In so many characters, which is an even number."""
    return "".join([_PAIRS[number >> bits & 1023] for bits in range(5 * length - 10, -1, -10)])


def _more_tails() -> str:
    """Random unique tails, the lowest first. Many are made at once: a fetch lets other threads run first."""
    text = b32hexencode(os.urandom(10 * 1024)).decode().lower()  # sixteen characters for ten bytes
    fetched = sorted([text[at : at + _TAIL] for at in range(0, len(text), 16)], reverse=True)
    first = fetched.pop()
    _tails.extend(fetched)
    return first


def _after(tail: str) -> str:
    """A higher one, for when the lowest of new ones would come after the highest of old ones."""
    return _spelled(int(tail, 32) + 1 + int.from_bytes(os.urandom(4)) & (1 << _TAIL_BITS) - 1, _TAIL)


# The child of a fork must not use the same ones as its parent.
os.register_at_fork(after_in_child=_tails.clear)


def is_uid(text: str) -> bool:
    """True if it has the form of a `new_uid`."""
    return len(text) == _UID_LENGTH and all(character in _ALPHABET for character in text)


def check_id(value: object, what: str = "task id") -> str:
    """The id, if a person can type it, read it and find it again.

    Raises:
        InvalidId: it is empty, too long, or has invisible characters.
    """
    if type(value) is str and 0 < len(value) <= MAX_ID and value.isascii() and value.isprintable() and " " not in value:
        return value  # as nearly all are
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
    """The identity of a process, for as long as it lives and after."""

    host: str
    boot_id: str
    pid_ns: str
    pid: int
    start: int


def this_process() -> Process:
    pid = os.getpid()
    return Process(socket.gethostname(), boot_id(), pid_ns(), pid, _start_of(pid) or 0)


def is_proven_dead(other: Process, *, same_machine: bool) -> bool:
    """True if that process has certainly ended; False if that cannot be known.

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
    """True if exactly that process is alive now, in this pid namespace of this machine."""
    if not other.boot_id or other.boot_id != boot_id() or other.pid_ns != pid_ns():
        return False
    return other.start != 0 and _start_of(other.pid) == other.start


@lru_cache(maxsize=1)
def user_name() -> str:
    import getpass  # asked for once

    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        _refuse_foreign(error)
        return str(os.getuid())


@lru_cache(maxsize=1)
def boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            return file.read().strip()
    except OSError as error:
        _refuse_foreign(error)
        return ""


def pid_ns() -> str:
    """The namespace in which this process's pids mean something; a container has one of its own."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError as error:
        _refuse_foreign(error)
        return ""


def _start_of(pid: int) -> int | None:
    """The process's start in clock ticks since boot; None when it has ended (a zombie has)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError as error:
        _refuse_foreign(error)
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _refuse_foreign(error: Exception) -> None:
    """Raise an error that no system call made: a signal's handler can raise TimeoutError, which is an OSError too."""
    if isinstance(error, OSError) and error.errno is None:
        raise error
