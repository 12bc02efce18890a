"""A session that also writes its recipe. Pure; used only for sessions that are to be built anew when they are lost."""

from __future__ import annotations

from hashlib import blake2b

from perdure.keeper.pgproxy.protocol import wire
from perdure.keeper.pgproxy.session.cycle import OURS, Cycle
from perdure.keeper.pgproxy.session.recipe import Entry, SessionRecipe
from perdure.keeper.pgproxy.session.session import Session

_PARSE, _BIND, _CLOSE, _DESCRIBE, _FLUSH = b"PBCDH"
_ROW, _COMPLETE, _ERROR, _COPY_IN, _READY = b"DCEGZ"


class RecordingSession(Session):
    def __init__(self, status: bytes, parameters: dict[str, str], recipe: SessionRecipe) -> None:
        super().__init__(status, parameters)
        self.recipe = recipe
        self._messages: list[bytes] = []
        self._parsed: dict[bytes, bytes] = {}  # by name: what the present client has prepared
        self._digest = blake2b(digest_size=16)
        self._head = b""  # of a message of the server that is incomplete
        self._kind = self._left = 0  # of the incomplete message, and how many bytes of it are still to arrive

    def attach(self, *, guarded: bool = False) -> int:
        self._messages, self._parsed = [], {}
        return super().attach(guarded=guarded)

    def _note(self, kind: int, message: bytes) -> None:
        super()._note(kind, message)
        self._messages.append(message)
        if kind == _PARSE and (name := wire.text(message, 5)[0]):
            self._parsed[name] = message
        elif kind in b"dcf":
            self.recipe.spoil("it has a COPY in it")

    def _left_out(self) -> None:
        self._messages = []

    def _boundary(self, kind: int, message: bytes) -> None:
        before = len(self._cycles)
        super()._boundary(kind, message)
        if len(self._cycles) > before:
            messages, self._messages = self._messages, []
            self._cycles[-1].entry = Entry(b"".join(messages), self._needs(messages))

    def _needs(self, messages: list[bytes]) -> dict[bytes, bytes]:
        """The statements that a batch uses and does not parse itself."""
        own = {wire.text(message, 5)[0] for message in messages if message[0] == _PARSE}
        used: set[bytes] = set()
        for message in messages:
            if message[0] == _BIND:
                used.add(wire.text(message, wire.text(message, 5)[1])[0])
            elif message[0] == _DESCRIBE and message[5:6] == b"S":
                used.add(message[6:-1])
        return {name: self._parsed[name] for name in used - own if name in self._parsed}

    def server_said(self, data: bytes) -> None:
        """Like any session, but answer by answer, with a look at each row, whose received part is kept."""
        at = begin = 0
        while at < len(data):
            if self._left:
                at = self._go_on(data, at)
                if not self._left and self._kind == _READY:
                    super().server_said(data[begin:at])
                    begin = at
                continue
            part = data[at : at + 5 - len(self._head)]
            self._head += part
            at += len(part)
            if len(self._head) == 5:
                self._begin_message()
        super().server_said(data[begin:])

    def _begin_message(self) -> None:
        self._kind, self._left = self._head[0], max(wire.number(self._head, 1) - 4, 0)
        if self._kind == _ROW:
            self._digest.update(self._head)
        self._head = b""

    def _go_on(self, data: bytes, at: int) -> int:
        stop = min(at + self._left, len(data))
        if self._kind == _ROW:
            self._digest.update(data[at:stop])
        self._left -= stop - at
        return stop

    def _look(self, kind: int, body: bytes) -> bool:
        entry = self._cycles[0].entry if self._cycles else None
        if entry is not None and kind == _COMPLETE:
            entry.tags.append(body[:-1].decode("utf-8", "replace"))
        elif entry is not None and kind == _ERROR:
            entry.failed = True
        elif kind == _COPY_IN:
            self.recipe.spoil("it has a COPY in it")
        return super()._look(kind, body)

    def _ready(self, status: bytes) -> Cycle:
        before = self.status
        cycle = super()._ready(status)
        rows, self._digest = self._digest.hexdigest(), blake2b(digest_size=16)
        if cycle.entry is not None:
            cycle.entry.rows, cycle.entry.status = rows, status.decode()
            if cycle.asked is not None and cycle.asked.call is not None:
                cycle.entry.path = cycle.asked.call.path
            self.recipe.ended(cycle.entry, before.decode())
        elif status == b"I":
            self.recipe.spoil("")
        elif cycle.client != OURS:
            self.recipe.spoil("a batch that was cut off is in it")
        self.recipe.blocks = self.blocks.facts()
        return cycle

    def fail_waiting(self, fields: dict[str, str]) -> None:
        super().fail_waiting(fields)
        self.recipe.spoil("it had failed")

    def rolled_back(self, why: str) -> None:
        super().rolled_back(why)
        self.recipe.spoil("")
