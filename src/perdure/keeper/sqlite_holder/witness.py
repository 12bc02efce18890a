"""Find out the outcome of a SQLite session whose holder has died, and whether its file is still the one it opened.

SQLite rolls back what was not committed, and does not say whether the last COMMIT was done. So the holder writes a
token into a database of its own, in the very transaction it commits: `marker.db` in the session's folder, attached to
the user's connection. The user's file contains nothing of ours. SQLite commits both or none when both keep a rollback
journal. When the user's file is in WAL mode, its part is committed first. So a token that is there proves the COMMIT.
If the token is missing but the file was written, the COMMIT may have happened just before: the outcome is uncertain.

    trace      what is under way, in the session's folder, written before each statement
    marker.db  the token of the last COMMIT
    identity   device, inode and generation of the user's file, and its count of changes while nobody else may change it
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import sys
import zlib
from typing import Any, NamedTuple

import apsw

from perdure.keeper.json_text import to_json
from perdure.keeper.session import COMMITTED, ROLLED_BACK, UNCERTAIN

_TRACE, _MARKER, _SCHEMA = "trace", "marker.db", "perdure_marker"
_PAGE, _LONGEST_STATEMENT = 4096, 200
_MAGIC, _COUNTER = slice(0, 16), slice(24, 28)
_HEADER, _WAL_HEADER, _FRAME_HEADER = 100, 32, 24
_BEFORE = r"(?:\s|/\*(?:(?!\*/)[\s\S])*\*/|--[^\n]*\n)*"
_PURE = re.compile(
    _BEFORE + r"(?:(?:COMMIT|END)(?:\s+TRANSACTION)?|RELEASE(?:\s+SAVEPOINT)?\s+\w+)\s*;?\s*", re.IGNORECASE
)
_WORDS = re.compile(r"\b(?:COMMIT|END|RELEASE|ROLLBACK)\b", re.IGNORECASE)
_GET_GENERATION = 0x80087601  # FS_IOC_GETVERSION of Linux
_ROLLBACK_MODES = frozenset({"delete", "truncate", "persist"})


class FileGone(Exception):
    """The file of the session is not the one it was opened on, and in which way."""


class Witness:
    def __init__(self, connection: apsw.Connection, path: str, folder: str, found: WalPlace) -> None:
        """`found` is where the log of the file ended before SQLite opened it."""
        self._connection, self._path, self._folder = connection, path, folder
        self._found, self._log = found, Log(path)
        self._fd = self._open()
        self.left = self._read()  # by the holder before
        self._file = _whole_identity(path)  # before SQLite has locks on it: to open and close a file gives them up
        connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()  # it is recovered if its writer has died
        self._begun = Log(path).end()
        self._had_bytes = False
        self._counter: bytes | None = None  # of the open transaction
        self._has_marker = self._attach()
        self._marker = _identity(os.path.join(folder, _MARKER))
        self._promised = ""  # the token that the next COMMIT brings with it
        self.has_committed = False  # the last transaction of more than one statement was committed

    def _attach(self) -> bool:
        """Have the marker; without one less can be told."""
        try:
            self._connection.execute(f"ATTACH ? AS {_SCHEMA}", (os.path.join(self._folder, _MARKER),))
            # Not OFF: SQLite commits files without it one after the other, and a death in between parts them.
            self._connection.execute(f"PRAGMA {_SCHEMA}.synchronous = NORMAL")
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS {_SCHEMA}.marker (token TEXT)")
            if self._marked() is None:
                # Not an empty one: a marker that was made anew is told from one in which nothing was committed.
                self._connection.execute(f"INSERT INTO {_SCHEMA}.marker VALUES (?)", (_token(),))  # noqa: S608
        except apsw.Error:
            return False
        return True

    def _marked(self) -> str | None:
        row = self._connection.execute(f"SELECT token FROM {_SCHEMA}.marker").fetchone()  # noqa: S608
        return None if row is None else str(row[0])

    # ── around a statement ──────────────────────────────────────────────────────────────────────

    def before(self, sql: str, blocks: dict[str, Any]) -> None:
        """Write down what is about to be done.

        Raises:
            FileGone: the write would be made to a file that no path leads to.
        """
        if problem := self.look():
            raise FileGone(problem)
        is_open = self._connection.in_transaction
        note: dict[str, Any] = {"statement": sql[:_LONGEST_STATEMENT], "was_open": is_open}
        if is_open and _WORDS.search(sql):
            note |= {"commits": True, **self._mark(bool(_PURE.fullmatch(sql)))}
        elif not is_open:
            note |= {"commits": True, **self._place()}
        self._write({"under_way": note, "blocks": blocks, "file": self._file})

    def _mark(self, is_pure: bool) -> dict[str, Any]:
        """Have the next COMMIT bring a token with it."""
        terms = self._terms(is_pure)
        if terms.get("token"):
            self._connection.execute(f"UPDATE {_SCHEMA}.marker SET token = ?", (terms["token"],))  # noqa: S608
        self._promised = ""
        return terms

    def promise(self) -> dict[str, Any]:
        """By what the next COMMIT is known later, also without what is in the session's folder; {} without one."""
        if not self._connection.in_transaction:
            return {}
        self._promised = _token()
        terms = self._terms(is_pure=True)
        return {"commits": True, **terms, "before": self._marked() if self._has_marker else None, "file": self._file}

    def _terms(self, is_pure: bool) -> dict[str, Any]:
        if _identity(os.path.join(self._folder, _MARKER)) != self._marker:
            self._has_marker = False  # the folder was removed; a journal for it could not even be made
        mode, of_marker = self._mode("main"), self._mode(_SCHEMA) if self._has_marker else ""
        both = mode in _ROLLBACK_MODES and of_marker in _ROLLBACK_MODES
        both = both and bool(self._connection.pragma("synchronous", schema="main"))  # else they are not one commit
        is_marked = is_pure and bool(of_marker) and (both or mode == "wal")
        if is_marked and self._connection.txn_state("main") != apsw.SQLITE_TXN_WRITE:
            return {"wrote_nothing": True}
        token = (self._promised or _token()) if is_marked else ""
        about = {"token": token, "both": both and is_marked}
        return {**about, **self._place()}

    def _place(self) -> dict[str, Any]:
        """The state of the file; it is the same later if nothing was committed."""
        return {"counter": self._header()[_COUNTER].hex(), "log": list(self._log.end())}

    def after(self, blocks: dict[str, Any]) -> None:
        """The statement has ended."""
        is_open = self._connection.in_transaction
        if not is_open:
            self._counter = None
        elif self._counter is None and self._connection.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            self._counter = self._header()[_COUNTER] if self._mode("main") in _ROLLBACK_MODES else None
        rest = {"under_way": None, "is_open": is_open, "has_committed": self.has_committed and not is_open}
        self._write({**rest, "blocks": blocks, "file": self._file})

    def put_back(self) -> None:
        """The session's folder was removed, and is there again, empty."""
        fresh = self._open()
        os.pwrite(fresh, os.pread(self._fd, _PAGE, 0), 0)
        self._fd = fresh  # the old one stays open: a statement in another thread may be writing to it

    def _open(self) -> int:
        path = os.path.join(self._folder, _TRACE)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def forget(self) -> None:
        """The session was ended on purpose."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)

    def _mode(self, schema: str) -> str:
        return str(self._connection.pragma("journal_mode", schema=schema)).lower()

    def _header(self) -> bytes:
        """As the file has it, read by SQLite: to open and close it ourselves would give up SQLite's locks."""
        with contextlib.suppress(apsw.Error):
            return self._connection.read("main", 0, 0, _HEADER)[1]
        return bytes(_HEADER)

    # ── the file ────────────────────────────────────────────────────────────────────────────────

    def look(self) -> str:
        """Whether the file is still the one that was opened; otherwise what was done to it."""
        return self.look_at_path() or self._look_inside()

    def look_at_path(self) -> str:
        """The same, without the connection: while it is busy."""
        found = _identity(self._path)
        if found is None:
            return f"its file {self._path} was moved or deleted"
        return "" if found == (self._file or ())[:2] else f"its file {self._path} was replaced by another one"

    def _look_inside(self) -> str:
        header = self._header()
        has_bytes = header[_MAGIC] == b"SQLite format 3\0"
        if self._had_bytes and not has_bytes:
            return f"its file {self._path} was overwritten or cut short"
        self._had_bytes = has_bytes
        if self._counter is not None and header[_COUNTER] != self._counter:
            return f"its file {self._path} was overwritten while its transaction was open"
        return ""

    # ── what the holder before has left ─────────────────────────────────────────────────────────

    def find_out(self) -> dict[str, Any]:
        """The outcome, now that SQLite has recovered the file; {} if there is nothing to tell."""
        left = self.left
        if not left:
            return {}
        note = left.get("under_way")
        if not note:
            transaction = ROLLED_BACK if left.get("is_open") else COMMITTED if left.get("has_committed") else ""
            return {"transaction": transaction, "why": "", "outcome": None, "blocks": _blocks(left, transaction, "")}
        state, why = self._outcome(note, self._found, is_another_file=self.is_another_file)
        transaction = (state or UNCERTAIN) if note["was_open"] else ""
        outcome = {
            "state": {COMMITTED: "done", ROLLED_BACK: "undone"}.get(state, "uncertain"),
            "statement": note["statement"],
            "error": None,
            "changes": 0,
            "transaction": "none",
        }
        return {"transaction": transaction, "why": why, "outcome": outcome, "blocks": _blocks(left, transaction, why)}

    def outcome_of(self, note: dict[str, Any]) -> dict[str, str]:
        """The outcome of a promised COMMIT: committed, rolled back or uncertain, and the reason."""
        ended, why = self._ask_outcome(note)
        return {"ended": ended, "why": why}

    def _ask_outcome(self, note: dict[str, Any]) -> tuple[str, str]:
        if not note:
            return UNCERTAIN, "nothing was noted of it"
        if self._connection.in_transaction:
            return UNCERTAIN, "another transaction is open in its session"
        try:
            self._connection.execute("BEGIN IMMEDIATE")  # so that no other process is just committing it
        except apsw.Error as problem:
            return UNCERTAIN, f"its file is locked: {problem}"
        try:
            # The number of a file's device can change with a restart of the machine; its inode stays.
            is_another = list(note.get("file") or ())[1:] != list(self._file or ())[1:]
            log = self._found if Log(self._path).end() == self._begun else WalPlace()
            state, why = self._outcome(note, log, is_another_file=is_another)
        finally:
            self._connection.execute("ROLLBACK")
        return state or UNCERTAIN, why

    def _outcome(self, note: dict[str, Any], log: WalPlace, *, is_another_file: bool) -> tuple[str, str]:
        """committed, rolled back, or nothing and why not."""
        if not note.get("commits"):
            return ROLLED_BACK, ""
        if note.get("wrote_nothing"):
            return COMMITTED, ""
        if is_another_file:
            return "", "its file is another one now"
        token = note.get("token")
        marked = self._marked() if token and self._has_marker else None
        if marked is not None and marked == token:
            return COMMITTED, ""
        if marked is not None and note.get("both") and note.get("before", marked) == marked:
            return ROLLED_BACK, ""
        is_wal = self._mode("main") == "wal"
        if not is_wal and note["counter"] == self._header()[_COUNTER].hex():
            return ROLLED_BACK, ""
        if is_wal and log.salts and note["log"] == list(log):
            return ROLLED_BACK, ""
        return "", "its file was written to since, by its last statement or by another process"

    @property
    def is_another_file(self) -> bool:
        """True if the previous holder had another file at this path."""
        return bool(self.left) and self.left.get("file") != list(self._file or ())

    def _read(self) -> dict[str, Any]:
        data = os.pread(self._fd, _PAGE, 0)
        if len(data) < 8 or not 0 < int.from_bytes(data[:4]) <= _PAGE - 8:
            return {}
        body = data[8 : 8 + int.from_bytes(data[:4])]
        if zlib.crc32(body) != int.from_bytes(data[4:8]):
            return {}
        with contextlib.suppress(ValueError):
            found = json.loads(body)
            return found if isinstance(found, dict) else {}
        return {}

    def _write(self, facts: dict[str, Any]) -> None:
        body = to_json(facts).encode()
        if len(body) > _PAGE - 8:
            outer = {**facts["blocks"], "open": facts["blocks"]["open"][:1]}  # the one whose outcome counts
            body = to_json({**facts, "blocks": outer}).encode()
        data = len(body).to_bytes(4) + zlib.crc32(body).to_bytes(4) + body
        os.pwrite(self._fd, data, 0)  # within one page: all of it or nothing


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _whole_identity(path: str) -> tuple[int, int, int] | None:
    """With the inode's generation: ext4 gives the inode of a deleted file to the next one. Once we hold the file open,
    no other file gets its inode."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found, generation = os.fstat(fd), bytearray(8)
        with contextlib.suppress(OSError):  # this file system has none
            fcntl.ioctl(fd, _GET_GENERATION, generation)
        return found.st_dev, found.st_ino, int.from_bytes(generation[:4], sys.byteorder)
    finally:
        os.close(fd)


class WalPlace(NamedTuple):
    """The end of the last commit in a log: the log's salts, which change when it is begun anew, and an offset.

    A log that is not there has none: the last one to close the file has brought it in and removed it.
    """

    salts: str = ""
    end: int = 0


class Log:
    """A file's write-ahead log, read from outside. SQLite has no locks on it that closing it would release."""

    def __init__(self, path: str) -> None:
        self._path, self._known = f"{path}-wal", WalPlace()

    def end(self) -> WalPlace:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return WalPlace()
        try:
            self._known = self._scan(fd)
        finally:
            os.close(fd)
        return self._known

    def _scan(self, fd: int) -> WalPlace:
        head = os.pread(fd, _WAL_HEADER, 0)
        if len(head) < _WAL_HEADER:
            about = os.fstat(fd)
            return WalPlace(f"empty {about.st_ino} {about.st_ctime_ns}")
        size, salts = int.from_bytes(head[8:12]) + _FRAME_HEADER, head[16:24].hex()
        end = at = self._known.end if self._known.salts == salts else _WAL_HEADER
        while len(frame := os.pread(fd, _FRAME_HEADER, at)) == _FRAME_HEADER and frame[8:16].hex() == salts:
            at += size
            if frame[4:8] != bytes(4):  # the last one of a commit
                end = at
        return WalPlace(salts, end)


def _blocks(left: dict[str, Any], transaction: str, why: str) -> dict[str, Any]:
    blocks: dict[str, Any] = left.get("blocks") or {}
    if not blocks.get("open"):
        return blocks
    how = {COMMITTED: "COMMIT", ROLLED_BACK: "ROLLBACK"}.get(transaction)
    how = how or f"whether it was committed is uncertain: {why}"
    ended = {"number": blocks["open"][0], "how": how, "outcome": transaction}
    return {**blocks, "open": [], "ended": ended}


def _token() -> str:
    return os.urandom(8).hex()
