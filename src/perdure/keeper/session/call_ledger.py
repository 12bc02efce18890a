"""Record the statements of a kept session by the call that sent them, so that no call runs twice.

A replayed durable function, or a step that runs again, sends its statements again. Each statement carries the path of
its call. For each path the ledger has the statement and its answer:

    begin      before the statement goes out; a process that dies now leaves it as pending
    done       before its client hears the answer
    ended      the transaction: its calls stay answered if it was committed, and are forgotten if not
    forget     a savepoint was rolled back to: later calls never happened
    identity   of the ledger itself, random: one that is made anew knows nothing of what another one was told

The file is in memory, beside the session's sockets, and only ever appended to. It outlives the session's process, as
the connection does. Its folder can be removed under a connection that lives on; so whoever parks the connection parks
the file too, and takes it from there. An incomplete record at its end is cut off: nothing was done after it.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

from perdure.keeper.json_text import to_json

LONGEST_ANSWER = 1 << 20
_MOST_OPEN_BYTES = 64 << 20
_MOST_SETTLED = 2000
_ROOMY = 4 << 20  # bytes of a file that is written anew when nothing is open
_HEAD = Struct("<cIII")  # kind, length of the header, length of the answer, checksum
_TEXT = 200

BEGIN, DONE, NEVER, ENDED, FORGET, UNCERTAIN, LINE, IDENTITY = b"B", b"D", b"N", b"E", b"F", b"U", b"L", b"I"


class StatementCall(NamedTuple):
    """The call a statement belongs to, and the statement's digest."""

    line: str  # of the task's journal
    path: str
    digest: str
    block: str = ""  # the transaction it belongs to; "" when it is one by itself
    text: str = ""  # its beginning, for people

    def told(self) -> bytes:
        return to_json([self.line, self.path, self.digest, self.block, self.text[:_TEXT]]).encode()

    @classmethod
    def of(cls, told: bytes) -> StatementCall:
        """Raises: ValueError."""
        parts = json.loads(told)
        if not isinstance(parts, list) or len(parts) != 5 or not all(isinstance(part, str) for part in parts):
            raise ValueError("this is not a call")
        return cls(*parts)


@dataclass(slots=True)
class Noted:
    """The entry of one call."""

    call: StatementCall
    answer: bytes | None = None  # None: too large to be kept, or lost with the process that heard it
    is_uncertain: bool = False


def digest_of(*parts: bytes) -> str:
    """Digest of a statement with its values."""
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(len(part).to_bytes(8))
        found.update(part)
    return found.hexdigest()


class Ledger:
    """`parked` is a copy of the file's descriptor, and counts whatever is at the path; `park` gets each new one."""

    def __init__(self, path: str = "", parked: int = -1, park: Callable[[int], None] = lambda _: None) -> None:
        self.line = ""
        self.identity = ""  # "" where nothing is written down
        self.settled: dict[str, Noted] = {}  # committed, oldest first
        self.open: dict[str, Noted] = {}  # of the open transaction, in order
        self.pending: StatementCall | None = None
        self._kept = 0
        self._path, self._file, self._size, self._park = path, -1, 0, park
        if path:
            self._read(parked)
            self.put_back()
            self._identify()

    def find(self, call: StatementCall) -> Noted | None:
        """The entry of this call; None for a call of another line of the journal."""
        if call.line != self.line:
            return None
        return self.open.get(call.path) or self.settled.get(call.path)

    @property
    def block(self) -> str:
        """The transaction that the open statements belong to."""
        return next((noted.call.block for noted in self.open.values()), "")

    # ── what happens ────────────────────────────────────────────────────────────────────────────

    def begin(self, call: StatementCall) -> None:
        """It is about to go out.

        Raises:
            OSError: this could not be written down, so it must not be sent.
        """
        if call.line != self.line:
            self._write(LINE, call.line.encode())
            self._begin_line(call.line)
        self._write(BEGIN, call.told())
        self.pending = call

    def done(self, answer: bytes | None, *, is_open: bool) -> None:
        """The pending call has ended. `is_open`: inside a transaction, which can still be rolled back."""
        if self.pending is None:
            return
        if answer is not None and (len(answer) > LONGEST_ANSWER or self._kept + len(answer) > _MOST_OPEN_BYTES):
            answer = None
        try:
            self._write(DONE, to_json([is_open, answer is not None]).encode(), answer or b"")
        except OSError:  # the disk is full; what follows is refused by `begin`
            answer = None
        self._done(answer, is_open)

    def never_ran(self) -> None:
        if self.pending is not None:
            self._write(NEVER)
            self.pending = None

    def uncertain(self) -> None:
        """It cannot be known whether the pending call was done."""
        if self.pending is not None:
            self._write(UNCERTAIN)
            self._uncertain()

    def ended(self, *, is_committed: bool) -> None:
        """The transaction is over."""
        if self.open or self.pending is not None:
            self._write(ENDED, b"1" if is_committed else b"0")
            self._ended(is_committed)
        if self._size > _ROOMY and not self.open:
            self._write_anew()

    def forget(self, path: str) -> None:
        """A savepoint was rolled back to: forget it and all later calls."""
        if path in self.open:
            self._write(FORGET, path.encode())
            self._forget(path)

    def connection_lost(self) -> None:
        """The connection is a new one: forget the calls that were not committed."""
        if self.pending is not None and not self.open and not self.pending.block:
            self.uncertain()
        self.ended(is_committed=False)

    def keep_only(self, paths: set[str]) -> None:
        """The open transaction was built anew, from the statements of these calls."""
        self.never_ran()
        missing = [path for path in self.open if path not in paths]
        if missing:
            self.forget(missing[0])

    def _identify(self) -> None:
        if not self.identity:
            identity = os.urandom(8).hex()
            with suppress(OSError):  # a full disk: without one, nobody relies on it
                self._write(IDENTITY, identity.encode())
                self.identity = identity

    def put_back(self) -> None:
        """Have the file at its path, also when that was removed."""
        if not self._is_at_path():
            self._write_anew()

    # ── state ───────────────────────────────────────────────────────────────────────────────────

    def _begin_line(self, line: str) -> None:
        self.line, self.settled, self.open, self.pending, self._kept = line, {}, {}, None, 0

    def _done(self, answer: bytes | None, is_open: bool) -> None:
        call, self.pending = self.pending, None
        if call is None:
            return
        self._kept += len(answer or b"")
        (self.open if is_open else self.settled)[call.path] = Noted(call, answer)
        self._bound()

    def _uncertain(self) -> None:
        call, self.pending = self.pending, None
        if call is not None:
            self.settled[call.path] = Noted(call, None, is_uncertain=True)

    def _ended(self, is_committed: bool) -> None:
        if is_committed:
            self.settled |= self.open
        self.open, self.pending = {}, None
        self._bound()
        self._kept = sum(len(noted.answer or b"") for noted in self.settled.values())

    def _forget(self, path: str) -> None:
        paths = list(self.open)
        for gone in paths[paths.index(path) :]:
            self._kept -= len(self.open.pop(gone).answer or b"")

    def _bound(self) -> None:
        """Keep only the newest committed calls: the task's journal has the others, unless a step was under way."""
        while len(self.settled) > _MOST_SETTLED:
            oldest = next((path for path, noted in self.settled.items() if not noted.is_uncertain), None)
            if oldest is None:
                return
            del self.settled[oldest]

    # ── the file ────────────────────────────────────────────────────────────────────────────────

    def _write(self, kind: bytes, header: bytes = b"", answer: bytes = b"") -> None:
        if self._file >= 0:
            data = _record(kind, header, answer)
            _write_all(self._file, data, self._size)
            self._size += len(data)

    def _read(self, parked: int) -> None:
        self._file = parked
        if parked < 0:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            self._park(self._file)
        data = b""
        while part := os.pread(self._file, 1 << 20, len(data)):
            data += part
        at = 0
        while (found := _read_record(data, at)) is not None:
            kind, header, answer, at = found
            self._apply(kind, header, answer)
        self._size = at
        os.ftruncate(self._file, at)

    def _is_at_path(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path, follow_symlinks=False), os.fstat(self._file))
        except FileNotFoundError:
            return False

    def _apply(self, kind: bytes, header: bytes, answer: bytes) -> None:
        if kind == LINE:
            self._begin_line(header.decode())
        elif kind == IDENTITY:
            self.identity = header.decode()
        elif kind == BEGIN:
            self.pending = StatementCall.of(header)
        elif kind == DONE:
            is_open, is_kept = json.loads(header)
            self._done(answer if is_kept else None, is_open)
        elif kind == NEVER:
            self.pending = None
        elif kind == UNCERTAIN:
            self._uncertain()
        elif kind == ENDED:
            self._ended(header == b"1")
        elif kind == FORGET and header.decode() in self.open:
            self._forget(header.decode())

    def _write_anew(self) -> None:
        """Write only what is still known into a new file, which replaces the old one atomically."""
        parts = [_record(IDENTITY, self.identity.encode()), _record(LINE, self.line.encode())]
        for calls, is_open in ((self.settled, False), (self.open, True)):
            for noted in calls.values():
                parts.append(_record(BEGIN, noted.call.told()))
                kept = to_json([is_open, noted.answer is not None]).encode()
                parts.append(_record(UNCERTAIN) if noted.is_uncertain else _record(DONE, kept, noted.answer or b""))
        if self.pending is not None:
            parts.append(_record(BEGIN, self.pending.told()))
        data = b"".join(parts)
        fresh = f"{self._path}.new"
        file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        _write_all(file, data, 0)
        os.replace(fresh, self._path)
        os.close(self._file)
        self._file, self._size = file, len(data)
        self._park(file)


def _write_all(file: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written


def _record(kind: bytes, header: bytes = b"", answer: bytes = b"") -> bytes:
    return _HEAD.pack(kind, len(header), len(answer), zlib.crc32(answer, zlib.crc32(header))) + header + answer


def _read_record(data: bytes, at: int) -> tuple[bytes, bytes, bytes, int] | None:
    if at + _HEAD.size > len(data):
        return None
    kind, header_size, answer_size, check = _HEAD.unpack_from(data, at)
    at += _HEAD.size
    end = at + header_size + answer_size
    if end > len(data):
        return None
    header, answer = data[at : at + header_size], data[at + header_size : end]
    if zlib.crc32(answer, zlib.crc32(header)) != check:
        return None
    return kind, header, answer, end
