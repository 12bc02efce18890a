"""Records with something changed in them: noticed, in our own words, and never more than the reader allows.

Each seed makes values of every kind, stores them as perdure does (codec, envelope, delta; with and without a key), and
changes the bytes at every height: the file's, and, below a checksum that fits, what is inside.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from perdure._ground.encoding import codec
from perdure._ground.encoding import deltas as frames
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import Key, KeyRing
from perdure.errors import InvalidInput, KeyMissing, RecordDamaged
from tests.torture.fuzz_bundle import scrambled

CORPUS = Path(__file__).parents[1] / "security" / "corpus" / "records"
PER_SEED = 60
LIMIT = 1 << 20
_RINGS = (KeyRing(), KeyRing([Key("fuzz", bytes(range(32)))]))
_TOLD = (RecordDamaged, KeyMissing, InvalidInput)


def run(seed: int) -> None:
    random_ = random.Random(seed)
    kept = [path.read_bytes() for path in sorted(CORPUS.iterdir())]
    for number in range(PER_SEED):
        try:
            for data in [*kept, random_.randbytes(random_.randrange(80))] if number == 0 else ():
                _read(data)
                _read(scrambled(random_, data))
            _attack(random_)
        except BaseException as error:
            error.add_note(f"seed {seed}, record {number}")
            raise


def _attack(random_: random.Random) -> None:
    value, ring = _value(random_, 3), random_.choice(_RINGS)
    plain = codec.encode(value)
    sealed = envelope.seal(plain, "fuzz", "task", ring)
    assert envelope.unseal(sealed, kind="fuzz", bound_to="task", ring=ring, limit=LIMIT) == plain
    changed = scrambled(random_, sealed)
    if changed != sealed:
        found = _unsealed(changed, ring)
        assert found is None or found == plain, "a changed record was taken for another"
    again = envelope.seal(scrambled(random_, plain), "fuzz", "task", ring)
    opened = _unsealed(again, ring)
    assert opened is not None
    _decoded(opened)
    _delta(random_, plain)
    _read(changed)


def _read(data: bytes) -> None:
    """Bytes of anybody, at every door."""
    for ring in _RINGS:
        _unsealed(data, ring)
    for ask in (envelope.kind_of, envelope.key_id, envelope.length_of, frames.length_of):
        try:
            ask(data)
        except _TOLD:
            continue
    _decoded(data)


def _unsealed(data: bytes, ring: KeyRing) -> bytes | None:
    try:
        found = envelope.unseal(data, kind="fuzz", bound_to="task", ring=ring, limit=LIMIT)
    except _TOLD:
        return None
    assert len(found) <= LIMIT
    return found


def _decoded(data: bytes) -> None:
    for read in (codec.decode, codec.peek, lambda data: codec.decode(data, dict[str, int])):
        try:
            read(data)
        except _TOLD:
            continue


def _delta(random_: random.Random, plain: bytes) -> None:
    before = plain * 3 + bytes(200)
    after = scrambled(random_, before)
    delta = frames.delta(before, after)
    if delta is None:
        return
    assert frames.apply(before, delta, limit=LIMIT) == after
    for changed in (scrambled(random_, delta), delta[: random_.randrange(len(delta))]):
        try:
            made = frames.apply(before, changed, limit=LIMIT)
        except RecordDamaged:
            continue
        assert made == after, "a changed delta made another state"


def _value(random_: random.Random, depth: int) -> Any:
    simple = [
        None, True, False, 0, -1, 2**31, -(2**63), 2**64 - 1, 10**30, 1.5, float("inf"), "", "text", "é" * 9, b"",
        b"\xc1\0", datetime(2026, 1, 2, tzinfo=UTC), time(3, 4), date(2026, 1, 2), timedelta(seconds=3),
        Decimal("1.10"), UUID(int=7), (1, 2), {1, 2}, frozenset({"a"}), {1: "a"}, {(1, 2): 3},
        "x" * random_.randrange(2000), random_.randbytes(9),
    ]  # fmt: skip
    if depth and random_.random() < 0.6:
        parts = [_value(random_, depth - 1) for _ in range(random_.randrange(5))]
        return parts if random_.random() < 0.5 else {f"k{number}": part for number, part in enumerate(parts)}
    return random_.choice(simple)
