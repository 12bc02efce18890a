"""What a durable function has done, in order: the entries of its journal.

A path names a call for ever: the scope it was made in, its name, and the how-manieth call of that name it
is in that scope. An entry's position is its place in the order in which results were handed to the code.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal[
    "result",  # a call that ended, with its value or its error
    "intent",  # an effect is about to run
    "cut",  # a call that was ended by cancellation or by its time running out
]


class Entry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One record of a journal. `op` is what sort of call it was: step, effect, now, pause, child, …"""

    kind: Kind
    op: str
    path: str
    digest: bytes
    value: bytes | None = None
    error: bytes | None = None
    at: int = 0
    took_ms: int = 0
    epoch: int = 0
    note: dict[str, str | int | float | None] | None = None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)
encode_entry = _encoder.encode
decode_entry = _decoder.decode


def path_of(scope: str, name: str, occurrence: int) -> str:
    return f"{scope}|{name}#{occurrence}"


def scope_of(path: str) -> str:
    return path.rpartition("|")[0]


def name_of(path: str) -> str:
    return path.rpartition("|")[2].rpartition("#")[0]
