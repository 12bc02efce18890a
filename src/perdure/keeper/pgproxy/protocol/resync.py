"""Find the end of what a dead proxy has half read. Pure.

A proxy that died may have read half of a message, so its successor does not know where the next one begins. It asks for
something whose answer was never sent before: a random sequence of Close and Sync, to which a server sends CloseComplete
and ReadyForQuery, in that order. Everything before that answer is the past.

Close and Sync are answered in every state of a transaction and change nothing in it. A Sync ends an unfinished
batch and with it an implicit transaction, which must not be committed for a client that never asked: see `ask`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from perdure.keeper.pgproxy.protocol import wire

BITS = 64
_MOST_KEPT = 1 << 17
_CLOSED = b"3\0\0\0\4"
_READY = b"Z\0\0\0\5"
POISON = "perdure: the client died before it asked for this"


def ask(bits: Sequence[bool], *, implicit: bool) -> bytes:
    """The bytes to send: an end to any COPY, an end to any batch, then the sequence.

    `implicit`: a batch may be open outside a transaction block. It is made to fail, because a Sync would commit it.
    """
    poison = wire.message(b"P", b"\0" + POISON.encode() + b"\0\0\0") if implicit else b""
    sequence = b"".join((wire.close_portal(b"perdure") if bit else b"") + wire.SYNC for bit in bits)
    # Ignored by a server that is not in a COPY.
    return wire.copy_fail("the client died") + poison + wire.SYNC + sequence


class ResyncAnswer:
    """Waits for the answer; `past` is what came before it, `status` the transaction's, once `is_found`."""

    def __init__(self, bits: Sequence[bool]) -> None:
        self._answers = {
            status: b"".join((_CLOSED if bit else b"") + _READY + status for bit in bits)
            for status in (b"I", b"T", b"E")
        }
        self._seen = bytearray()
        self.is_short = False  # the beginning of what came before was thrown away
        self.past = self.rest = self.status = b""

    @property
    def seen(self) -> bytes:
        return bytes(self._seen)

    def feed(self, data: bytes) -> bool:
        """True if the answer has arrived; the bytes after it are `rest`."""
        self._seen += data
        for status, answer in self._answers.items():
            at = self._seen.find(answer)
            if at >= 0:
                self.status = status
                self.past, self.rest = bytes(self._seen[:at]), bytes(self._seen[at + len(answer) :])
                return True
        # Two gigabytes of a result may be on their way; the end is all that counts.
        if len(self._seen) > _MOST_KEPT * 2:
            del self._seen[:-_MOST_KEPT]
            self.is_short = True
        return False


def tail(past: bytes) -> tuple[str, dict[str, str]]:
    """The last command tag and the last error in what came before, as far as both can be told from its end."""
    tag, error = "", {}
    for found in re.finditer(rb"C\0\0\0(.)((?:[A-Z][A-Z ]+)(?: \d+)*)\0", past, re.DOTALL):
        if found[1][0] == len(found[2]) + 5:
            tag = found[2].decode()
    for found in re.finditer(rb"E(\0\0..)S[A-Z]+\0", past, re.DOTALL):
        size = int.from_bytes(found[1])
        body = past[found.start() + 5 : found.start() + 1 + size]
        if body.endswith(b"\0\0") and (said := wire.fields(body)).get("C"):
            error = said
    return tag, error
