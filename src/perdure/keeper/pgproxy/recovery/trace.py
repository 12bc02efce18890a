"""The trace a session leaves after all its holders have died: a small file in its folder.

It names the backend, the open blocks of a durable function, and the batch under way: written before a batch is sent,
and marked as answered when the server is ready again. The next opener of the session asks the server about that batch
(postmortem.py). One byte is the state, the rest is JSON in two places of which one counts.

    0        nothing was ever begun
    I T E    at rest: in no transaction, in one, in a failed one
    C        at rest in no transaction, and the last one was committed
    W        a batch is under way
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
import zlib
from dataclasses import asdict, dataclass, field
from struct import Struct
from typing import Any

from perdure.keeper import json_text as jsons
from perdure.keeper.pgproxy.protocol import transaction_ends as endings

NAME = "trace"
LONGEST_STATEMENT = 200
_PAGE = 8192
_SLOT = Struct("<II")  # length, checksum
_STATE, _TURN, _FIRST = 0, 1, 64
_SIZE = _FIRST + 2 * _PAGE
UNDER_WAY, HAS_COMMITTED = b"W", b"C"
# Others can commit several times (CALL, DO), or cannot be in a transaction at all.
_ONE = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|MERGE|WITH|SELECT|COPY)\b[^;]*;?\s*$", re.IGNORECASE)


@dataclass
class Server:
    """A server and the backend that serves us, as it says itself; empty where it does not say."""

    backend: int = 0
    since: str = ""  # when the backend was started: with its number, who it is
    system: str = ""
    timeline: str = ""
    counters: str = ""  # since when the server counts: anew after each crash
    is_pooled: bool = False  # a pooler is in between, and the backend may serve others after us
    tells: bool = False  # the number of a transaction can be asked for


@dataclass
class Left:
    """The known facts of an ended session. `before` is the transaction's status before the last batch."""

    state: str  # as in the file
    server: Server
    before: str = "I"
    statement: str = ""
    ending: str = endings.NONE  # the batch's possible effect on the transaction
    is_asked: bool = False  # for the number of its transaction: an empty one then means that nothing was written
    transaction: str = ""  # its number
    batches: int = 1  # sent without waiting for the previous answer
    rests: int = 0  # how many batches had been answered before
    blocks: dict[str, Any] = field(default_factory=dict)

    @property
    def is_under_way(self) -> bool:
        return self.state == UNDER_WAY.decode()

    @property
    def has_committed(self) -> bool:
        """True if it was at rest after a COMMIT that the server had confirmed."""
        return self.state == HAS_COMMITTED.decode()

    @property
    def may_have_committed(self) -> bool:
        """True if the batch under way may have made something permanent."""
        if not self.is_under_way:
            return False
        return (
            self.before == "I" or self.ending == endings.MIXED or (self.ending == endings.COMMIT and self.before == "T")
        )

    @property
    def is_one_statement(self) -> bool:
        """True if it is a transaction by itself: seen while it runs, its number tells its outcome."""
        is_alone = self.before == "I" and self.batches == 1 and self.ending == endings.NONE
        is_whole = len(self.statement) < LONGEST_STATEMENT
        return self.is_under_way and is_alone and is_whole and _ONE.match(self.statement) is not None


class Trace:
    """The file of one session. `path` is in a folder that only its user can enter."""

    def __init__(self, path: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(fd, _SIZE)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(fd, 0, _SIZE)
            self._map = mmap.mmap(fd, _SIZE)
        finally:
            os.close(fd)

    def moved_to(self, path: str) -> Trace:
        """The same in another file, or in one of the same name where that was removed."""
        other = Trace(path)
        other._map[:] = self._map[:]
        return other

    def note(self, left: Left) -> None:
        """Write it down whole; the state last."""
        data = jsons.to_json({**asdict(left), "state": ""}).encode()
        if len(data) > _PAGE - _SLOT.size:
            outer = {**left.blocks, "open": left.blocks["open"][:1]}  # the one whose outcome counts
            data = jsons.to_json({**asdict(left), "state": "", "statement": "", "blocks": outer}).encode()
        turn = 1 - self._map[_TURN]
        at = _FIRST + turn * _PAGE
        self._map[at + _SLOT.size : at + _SLOT.size + len(data)] = data
        _SLOT.pack_into(self._map, at, len(data), zlib.crc32(data))
        self._map[_TURN] = turn
        self._map[_STATE] = ord(left.state)

    def rest(self, state: bytes) -> None:
        """The batch that was noted has been answered."""
        self._map[_STATE] = state[0]

    def read(self) -> Left | None:
        """The facts left; None if there are none, or none that can be read."""
        state = chr(self._map[_STATE])
        if state not in "ITECW":
            return None
        at = _FIRST + (self._map[_TURN] & 1) * _PAGE
        size, check = _SLOT.unpack_from(self._map, at)
        data = self._map[at + _SLOT.size : at + _SLOT.size + min(size, _PAGE - _SLOT.size)]
        if not size or zlib.crc32(data) != check:
            return None
        with contextlib.suppress(ValueError, TypeError, KeyError):
            facts = json.loads(data)
            return Left(**{**facts, "state": state, "server": Server(**facts["server"])})
        return None

    def clear(self) -> None:
        """The session was ended on purpose: nothing is left of it."""
        self._map[_STATE] = 0
