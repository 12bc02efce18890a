"""The envelope: each damage is noticed, each key is honoured, and nothing unpacks past its bound."""

from __future__ import annotations

import base64
import os
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure._ground.encoding import zstd
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import Key, KeyRing
from perdure._ground.secrets.envelope import key_id, seal, unseal
from perdure.errors import KeyMissing, RecordDamaged, TooLarge

NO_KEY = KeyRing()
RING = KeyRing([Key("k1", bytes(range(32)))])
TEXT = b"the agent said: " + b"lorem ipsum dolor sit amet " * 40
RINGS = pytest.mark.parametrize("ring", [NO_KEY, RING], ids=["plain", "sealed"])


def wrap(payload: bytes, ring: KeyRing = NO_KEY, kind: str = "state", bound_to: str = "task-1", **more: bool) -> bytes:
    return seal(payload, kind=kind, bound_to=bound_to, ring=ring, **more)


def unwrap(data: bytes, ring: KeyRing = NO_KEY, kind: str = "state", bound_to: str = "task-1", **more: int) -> bytes:
    return unseal(data, kind=kind, bound_to=bound_to, ring=ring, **more)


@RINGS
@settings(max_examples=60)
@given(payload=st.binary(max_size=600) | st.binary(max_size=40).map(lambda part: part * 40), compress=st.booleans())
def test_a_payload_comes_out_of_its_envelope_as_it_went_in(ring, payload, compress):
    assert unwrap(wrap(payload, ring, compress=compress), ring) == payload


def test_a_repetitive_payload_is_packed_and_a_small_or_random_one_is_not():
    noise, small = os.urandom(5000), b"a" * 100

    assert len(wrap(TEXT)) < len(TEXT) / 5
    assert noise in wrap(noise)
    assert small in wrap(small)
    assert TEXT in wrap(TEXT, compress=False)


def test_a_small_entry_costs_few_bytes_of_envelope():
    assert len(wrap(b"x" * 100, kind="entry")) == 100 + 17


# ── damage ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R95")
@RINGS
@pytest.mark.parametrize("payload", [b"small", TEXT], ids=["small", "packed"])
def test_one_flipped_bit_anywhere_is_noticed(ring, payload):
    data = wrap(payload, ring)

    for at in range(len(data)):
        for bit in range(8):
            flipped = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
            with pytest.raises(RecordDamaged):
                unwrap(flipped, ring)


@pytest.mark.req("R95")
@RINGS
def test_a_record_that_is_cut_off_or_has_a_tail_is_noticed(ring):
    data = wrap(TEXT, ring)

    for bad in [*(data[:length] for length in range(len(data))), data + b"\x00"]:
        with pytest.raises(RecordDamaged):
            unwrap(bad, ring)


@pytest.mark.req("R95")
def test_the_message_names_the_record_and_says_how_it_was_noticed():
    data = bytearray(wrap(b"hello"))
    data[-6] ^= 1

    with pytest.raises(RecordDamaged) as damaged:
        unwrap(bytes(data))
    assert damaged.value.record == "the state of task-1"
    assert "checksum" in damaged.value.problem


@RINGS
def test_a_record_of_another_kind_is_refused(ring):
    with pytest.raises(RecordDamaged, match="kind 'result'"):
        unwrap(wrap(b"x", ring, kind="result"), ring, kind="state")


def test_a_record_of_a_newer_format_is_refused_as_that():
    data = b"\x07" + wrap(b"x")[1:]

    for read in (unwrap, key_id):
        with pytest.raises(RecordDamaged, match=r"written by a newer perdure \(format 7\)"):
            read(data)


@settings(max_examples=100)
@given(st.binary(max_size=60), st.booleans())
def test_random_bytes_with_a_right_checksum_are_damaged_too(tail, is_ours):
    data = (b"\x01" if is_ours else b"") + tail
    data += zlib.crc32(data).to_bytes(4, "little")

    with pytest.raises((RecordDamaged, KeyMissing)):
        unwrap(data, RING)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R142")
def test_a_sealed_record_shows_nothing_of_its_payload():
    secret = b"token=hunter2"
    data = wrap(secret, RING)

    assert secret not in data and base64.b64encode(secret) not in data
    assert unwrap(data, RING) == secret


@pytest.mark.req("R142")
def test_a_sealed_record_cannot_be_passed_off_as_another_tasks_or_kinds():
    data = wrap(b"approve: yes", RING, kind="event", bound_to="task-1")

    with pytest.raises(RecordDamaged, match="belongs elsewhere"):
        unwrap(data, RING, kind="event", bound_to="task-2")
    renamed = data[:-4].replace(b"event", b"state")
    renamed += zlib.crc32(renamed).to_bytes(4, "little")
    with pytest.raises(RecordDamaged, match="belongs elsewhere"):
        unwrap(renamed, RING, kind="state", bound_to="task-1")


@pytest.mark.req("R142")
def test_records_of_an_old_key_and_of_none_are_read_after_rotation():
    plain, old = wrap(TEXT), wrap(TEXT, RING)
    ring = KeyRing([Key("k2", bytes(32)), Key("k1", bytes(range(32)))])
    new = wrap(TEXT, ring)

    assert [key_id(data) for data in (plain, old, new)] == [None, "k1", "k2"]
    assert [unwrap(data, ring) for data in (plain, old, new)] == [TEXT] * 3


def test_a_record_whose_key_is_not_here_names_the_key():
    with pytest.raises(KeyMissing) as missing:
        unwrap(wrap(b"x", RING), NO_KEY)
    assert missing.value.key_id == "k1"


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────


def forge(body: bytes, announced: int) -> bytes:
    """A packed record with a right checksum, and a body of our choice."""
    data = bytes((1, 1, 5, 0)) + b"state" + announced.to_bytes(4) + body
    return data + zlib.crc32(data).to_bytes(4, "little")


@pytest.mark.req("R95")
def test_a_small_frame_that_would_unpack_to_200_mb_is_refused_without_unpacking_it():
    library = zstd._library()
    bomb = zstd.pack(bytes(200_000_000), 3)
    sly = library.compress(bytes(200_000_000), options={library.CompressionParameter.window_log: 17})
    assert len(bomb) < 20_000 and len(sly) < 20_000

    tracemalloc.start()
    for frame, announced, limit in (
        (bomb, 1000, envelope.MAX_BYTES),
        (bomb, 200_000_000, 1_000_000),
        (sly, 200_000, envelope.MAX_BYTES),  # its window is no larger than what it announces
    ):
        with pytest.raises(RecordDamaged):
            unwrap(forge(frame, announced), limit=limit)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize(
    "body, announced",
    [
        (zstd.pack(TEXT, 3), len(TEXT) + 1),
        (zstd.pack(TEXT, 3), len(TEXT) - 1),
        (zstd.pack(TEXT, 3)[:-3], len(TEXT)),
        (zstd.pack(TEXT, 3) * 2, len(TEXT)),
        (b"not zstd", 8),
        (b"", 0),
    ],
    ids=["less", "more", "cut off", "two frames", "no frame", "empty"],
)
def test_a_frame_that_is_not_exactly_what_was_announced_is_refused(body, announced):
    with pytest.raises(RecordDamaged):
        unwrap(forge(body, announced))


def test_a_record_past_the_readers_limit_is_refused():
    data = wrap(TEXT)

    assert unwrap(data, limit=len(TEXT)) == TEXT
    with pytest.raises(RecordDamaged, match="the limit is"):
        unwrap(data, limit=len(TEXT) - 1)


def test_a_payload_past_what_any_record_may_hold_is_refused(monkeypatch):
    monkeypatch.setattr(envelope, "MAX_BYTES", 1000)

    with pytest.raises(TooLarge) as refused:
        wrap(bytes(1001))
    assert (refused.value.size, refused.value.limit) == (1001, 1000)


@RINGS
@given(payload=st.binary(max_size=600))
def test_a_sealer_of_one_kind_seals_as_any_other(ring, payload):
    sealed = envelope.close(envelope.sealer_of("entry")(payload, "task-1", ring), 0)

    assert unwrap(sealed, ring, kind="entry") == payload
    if ring is NO_KEY:  # else there is chance in it
        assert sealed == wrap(payload, kind="entry")


@RINGS
@pytest.mark.req("R95")
@given(payload=st.binary(max_size=600), place=st.integers(1, 2**32 - 1), other=st.integers(0, 2**32 - 1))
def test_a_record_that_was_sealed_for_a_place_is_read_there_only(ring, payload, place, other):
    sealed = envelope.seal(payload, "entry", "task-1", ring, place=place)
    unplaced = envelope.seal(payload, "entry", "task-1", ring)

    def read(data, at):
        return envelope.unseal(data, kind="entry", bound_to="task-1", ring=ring, place=at)

    assert read(sealed, place) == read(unplaced, place) == read(unplaced, other) == payload
    if other != place:
        with pytest.raises(RecordDamaged):
            read(sealed, other)
