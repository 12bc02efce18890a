"""What can be known without asking perdure: processes by /proc, rows and backends by the server, bytes by the files."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

Identity = tuple[int, int]  # pid and start time
_GET_GENERATION = 0x80087601  # FS_IOC_GETVERSION
_ROLES = {
    "perdure.keeper.pgproxy": "proxy",
    "perdure.keeper.sqlite_holder": "holder",
    "keeper/fetcher.py": "fetcher",
    "keeper/anchor.py": "anchor",
    "perdure.keeper.daemon": "keeper",
    "honesty/service.py": "service",
    "bash": "shell",
}


@dataclass(frozen=True)
class Process:
    pid: int
    start: int
    parent: int
    state: str
    command: str

    @property
    def identity(self) -> Identity:
        return self.pid, self.start

    @property
    def role(self) -> str:
        return next((role for part, role in _ROLES.items() if part in self.command), "other")

    def __str__(self) -> str:
        return f"{self.role} {self.pid} ({self.command[:120]})"


class Family:
    """All processes of a round: what runs in its folder or with it as HOME, and whatever those have started."""

    def __init__(self, folder: str) -> None:
        self._folder = folder.encode()
        self._known: set[Identity] = set()

    def alive(self, role: str = "") -> list[Process]:
        found = [process for process in processes() if self._is_ours(process)]
        self._known |= {process.identity for process in found}
        return [process for process in found if not role or process.role == role]

    def _is_ours(self, process: Process) -> bool:
        if process.identity in self._known:
            return True
        if process.pid == os.getpid():
            return False
        if any(pid == process.parent for pid, _ in self._known):
            return True
        with suppress(OSError):
            folder = self._folder
            return (
                folder in process.command.encode()
                or b"HOME=" + folder + b"\0" in Path(f"/proc/{process.pid}/environ").read_bytes()
                or os.readlink(f"/proc/{process.pid}/cwd").encode().startswith(folder)
            )
        return False

    def kill_all(self) -> None:
        for process in self.alive():
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


def processes() -> Iterator[Process]:
    """All that live; what has ended and was not waited for does not."""
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := process_of(int(name))) is not None:
            yield found


def process_of(pid: int) -> Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    if stat[0] in "ZX":
        return None
    return Process(pid, int(stat[19]), int(stat[1]), stat[0], command)


def identity_of(pid: int) -> Identity | None:
    found = process_of(pid)
    return None if found is None else found.identity


def is_alive(identity: Identity) -> bool:
    return identity_of(identity[0]) == identity


def soon(is_so: Callable[[], Any], seconds: float = 3.0) -> bool:
    """True if it comes to be so; for what was sent on its way and needs a moment, like the end of a killed process."""
    bell = threading.Event()
    for _ in range(max(1, int(seconds / 0.02))):
        if is_so():
            return True
        bell.wait(0.02)
    return bool(is_so())


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def effects(folder: Path) -> dict[str, int]:
    try:
        return dict(Counter((folder / "effects").read_text().split()))
    except FileNotFoundError:
        return {}


def file_identity(path: Path) -> tuple[int, int, int] | None:
    """Device, inode and generation: the next file can get the inode of a deleted one."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        found, generation = os.fstat(file), bytearray(8)
        with suppress(OSError):
            fcntl.ioctl(file, _GET_GENERATION, generation)
        return found.st_dev, found.st_ino, int.from_bytes(generation, sys.byteorder)
    finally:
        os.close(file)


def contents(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def has_open(process: Process, file: tuple[int, int, int]) -> bool:
    with suppress(OSError):
        for fd in os.listdir(f"/proc/{process.pid}/fd"):
            with suppress(OSError):
                found = os.stat(f"/proc/{process.pid}/fd/{fd}")
                if (found.st_dev, found.st_ino) == file[:2]:
                    return True
    return False


# ── databases ────────────────────────────────────────────────────────────────────────────────────


def sqlite_rows(path: Path, table: str = "rows") -> list[int] | None:
    """The committed rows; None when there is no such database."""
    if not path.exists():
        return None
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as database:
        return [row[0] for row in database.execute(f"SELECT n FROM {table} ORDER BY n")]
    return None


def is_locked(path: Path) -> bool:
    """True if somebody has a transaction open that writes."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=0, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    return False


class Eyes:
    """A connection of one's own to the server, made again when the server was ended."""

    def __init__(self, dsn: str, database: str) -> None:
        self._dsn, self._database = dsn, database
        self._connection: psycopg.Connection[Any] | None = None

    def ask(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        bell = threading.Event()
        for _ in range(1000):
            try:
                if self._connection is None:
                    self._connection = psycopg.connect(f"{self._dsn} dbname={self._database}", autocommit=True)
                cursor = self._connection.execute(sql.encode(), values)
                return cursor.fetchall() if cursor.description else []
            except psycopg.OperationalError:
                self.close()
                bell.wait(0.02)
        raise TimeoutError("the server does not come back")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def rows(self) -> list[int]:
        return [row[0] for row in self.ask("SELECT n FROM rows ORDER BY n")]

    def backends(self) -> dict[int, tuple[str, bool]]:
        """By pid: what each does, and whether it is in a transaction; all but this one."""
        sql = (
            "SELECT pid, state, xact_start IS NOT NULL FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return {pid: (_text(state), bool(is_in)) for pid, state, is_in in self.ask(sql)}


def _text(value: str | bytes | None) -> str:
    """A server without an encoding gives bytes."""
    return value.decode() if isinstance(value, bytes) else value or ""


# ── services and sockets ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Boot:
    pid: int
    start: int
    uuid: str
    is_second: bool

    @property
    def is_alive(self) -> bool:
        return is_alive((self.pid, self.start))


def boots(folder: Path) -> list[Boot]:
    try:
        lines = (folder / "boots").read_text().splitlines()
    except FileNotFoundError:
        return []
    parts = [line.split() for line in lines]
    return [Boot(int(pid), int(start), uuid, how == "second") for pid, start, uuid, how in parts]


def service_uuid(folder: Path) -> str:
    """What the service says that answers now."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as door:
        door.settimeout(5)
        door.connect(str(folder / "service.sock"))
        return door.recv(100).decode()
    return ""


def listens_on(port: int) -> str:
    """The inode of the socket that listens there; empty when none does."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        parts = line.split()
        if parts[3] == "0A" and int(parts[1].partition(":")[2], 16) == port:
            return parts[9]
    return ""
