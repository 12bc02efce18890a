"""Messages with faults in them: cut short, lying about their length, in the wrong order, of huge counts. Seeded.

A mutated message still looks like one, so that a reader comes further into it than with random bytes.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from typing import Any

_SIZES = (0, 1, 3, 4, 5, 6, 0x7F, 0x100, 0xFFFF, 30_001, 0x100000, 0x3FFFFFFF, 0x40000001, 0x7FFFFFFF, 0xFFFFFFFF)
_COUNTS = (0, 1, 2, 0x7FFF, 0x8000, 0xFFFF)
_BYTES = b"\0\1\x7f\x80\xff'\"$;QPBEDCSHXZRTIE"


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def mutated(draw: random.Random, messages: Sequence[bytes]) -> bytes:
    """Some of these messages, in some order, each whole or with a fault."""
    chosen = [draw.choice(messages) for _ in range(draw.randrange(1, 8))]
    return b"".join(_with_fault(draw, one) if draw.random() < 0.5 else one for one in chosen)


def _with_fault(draw: random.Random, one: bytes) -> bytes:
    data = bytearray(one)
    match draw.randrange(9):
        case 0:  # cut short
            del data[draw.randrange(len(data)) :]
        case 1 if len(data) >= 5:  # a length that lies
            data[1:5] = struct.pack("!I", draw.choice(_SIZES))
        case 2 if len(data) >= 5:  # a length that is off by a little
            size = struct.unpack_from("!I", data, 1)[0] + draw.randrange(-4, 5)
            data[1:5] = struct.pack("!I", size & 0xFFFFFFFF)
        case 3 if len(data) > 5:  # a byte
            data[draw.randrange(5, len(data))] = draw.choice(_BYTES)
        case 4 if len(data) > 7:  # a count
            at = draw.randrange(5, len(data) - 1)
            data[at : at + 2] = struct.pack("!H", draw.choice(_COUNTS))
        case 5:  # another kind
            data[0] = draw.randrange(256)
        case 6:  # no end of a text
            data = (
                data.replace(b"\0", b"x", 1)
                if draw.random() < 0.3
                else bytearray(data[:5] + data[5:].replace(b"\0", b""))
            )
        case 7:  # more than there should be
            body = bytes(data[5:]) + draw.randbytes(draw.randrange(1, 60))
            data = bytearray(message(bytes(data[:1]) or b"Q", body))
        case _:
            data = bytearray(draw.randbytes(draw.randrange(1, 40)))
    return bytes(data)


def pieces(draw: random.Random, data: bytes) -> list[bytes]:
    """The same bytes, cut where nobody expects it."""
    if not data:
        return []
    cuts = sorted(draw.randrange(len(data)) for _ in range(draw.randrange(4)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]


def value(draw: random.Random, depth: int = 0) -> Any:
    """Anything that JSON can say."""
    match draw.randrange(9 if depth < 4 else 6):
        case 0:
            return draw.choice([None, True, False])
        case 1:
            return draw.choice([0, -1, 1 << 31, -(1 << 63), 1 << 70, 10**400])
        case 2:
            return draw.choice([0.5, -1e308, 1e-300, float("nan"), float("inf")])
        case 3 | 4:
            return draw.choice(["", "a", "../..", "/etc/passwd", "\0", "\ud800", "x" * 5000, "all", "quiet"])
        case 5:
            return draw.choice([[], {}])
        case 6 | 7:
            return {str(value(draw, 9))[:20]: value(draw, depth + 1) for _ in range(draw.randrange(4))}
        case _:
            return [value(draw, depth + 1) for _ in range(draw.randrange(4))]


def nested(draw: random.Random) -> str:
    """JSON that is deeper than any reader should follow."""
    depth = draw.choice([50, 99, 101, 500, 1000, 5000, 30_000])
    opens, closes = draw.choice([("[", "]"), ('{"a":', "}")])
    return opens * depth + "1" + (closes * depth if draw.random() < 0.8 else "")


def as_json(anything: Any) -> bytes:
    return json.dumps(anything).encode("utf-8", "surrogatepass")
