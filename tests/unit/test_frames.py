"""Deltas: they make the new state again, are small when little changed, and notice a wrong base."""

from __future__ import annotations

import os
import random
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure._ground.encoding import deltas as frames
from perdure._ground.encoding import zstd
from perdure._ground.encoding.codec import encode
from perdure._ground.encoding.deltas import apply, delta, wants_keyframe
from perdure.errors import RecordDamaged

LIMIT = 64 * 1024 * 1024


def prose(seed: int, size: int) -> str:
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(400)]
    return " ".join(rng.choices(words, k=size // 6))[:size]


def state_of(turns: int, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "id": turn, "content": prose(turn, 1000)} for turn in range(turns)]
    return {"messages": messages, "phase": "thinking", **more}


def delta_between(before: bytes, after: bytes) -> bytes:
    made = delta(before, after)
    assert made is not None
    assert apply(before, made, limit=LIMIT) == after
    return made


# ── they make the new state again ────────────────────────────────────────────────────────────────

edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 300), st.binary(max_size=300)),
    max_size=5,
)


@settings(max_examples=150)
@given(st.integers(0, 40_000), st.booleans(), edits)
def test_a_delta_of_random_edits_makes_the_new_state(size, is_random, changes):
    rng = random.Random(size)
    before = rng.randbytes(size) if is_random else prose(size, size).encode()
    after = before
    for where, removed, inserted in changes:
        at = int(where * len(after))
        after = after[:at] + inserted + after[at + removed :]

    made = delta(before, after)

    if made is not None:
        assert apply(before, made, limit=LIMIT) == after
    elif len(after) > 4096:
        # Only where nearly everything is new may a keyframe be the better choice.
        assert sum(len(inserted) for _, _, inserted in changes) * 4 > len(zstd.pack(after, 1))


@settings(max_examples=60)
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_a_delta_between_unrelated_bytes_makes_the_new_ones_or_is_none(before, after):
    made = delta(before, after)

    assert made is None or apply(before, made, limit=LIMIT) == after


@pytest.mark.req("R102")
def test_a_chain_of_a_hundred_small_changes_to_a_large_state_costs_little_and_restores_each():
    state = state_of(1000)
    before = keyframe = encode(state)
    chain, states = [], []
    for turn in range(100):
        state["messages"][turn * 7]["content"] = prose(5000 + turn, 1000)
        state["phase"] = f"turn {turn}"
        after = encode(state)
        chain.append(delta_between(before, after))
        states.append(after)
        before = after

    assert sum(map(len, chain)) < len(keyframe) / 10
    restored = keyframe
    for change, expected in zip(chain, states, strict=True):
        restored = apply(restored, change, limit=LIMIT)
        assert restored == expected


# ── small when little changed ────────────────────────────────────────────────────────────────────


@pytest.mark.req("R102")
@pytest.mark.parametrize(
    "change",
    [
        lambda s: s["messages"].append({"role": "user", "content": prose(999, 1000)}),
        lambda s: s.update(phase="acting"),
        lambda s: s["messages"][150].update(content=prose(999, 1200)),
        lambda s: s["messages"][10].update(id=70_000) or s["messages"].append({"content": prose(999, 1000)}),
        lambda s: s["messages"].__delitem__(slice(0, 40)) or s["messages"].append({"content": prose(999, 1000)}),
        lambda s: s["log"].append("more") or s["messages"].append({"content": prose(999, 1000)}),
        lambda s: None,
    ],
    ids=["appended", "renamed", "edited inside", "edited and appended", "trimmed and appended", "two lists", "nothing"],
)
def test_a_small_change_is_a_small_delta(change):
    state = state_of(300, log=[f"event {n}" for n in range(3000)])
    before = encode(state)
    change(state)

    assert len(delta_between(before, encode(state))) < 1200


def test_a_list_that_moved_and_grew_is_found_by_a_guess_without_searching_everything(monkeypatch):
    monkeypatch.setattr(frames, "WHOLE_SEARCH_FROM", LIMIT)
    before = encode({"title": "a first draft", **state_of(300), "turn": 1})
    after = encode({"title": "draft", **state_of(301), "turn": 2})

    assert len(delta_between(before, after)) < 1200


def test_a_state_whose_parts_changed_places_is_found_again_by_searching_all_of_it():
    state = state_of(300)
    before = encode(state)
    random.Random(1).shuffle(state["messages"])

    assert len(delta_between(before, encode(state))) < len(before) / 20


def test_an_unchanged_state_is_a_delta_of_a_few_bytes():
    state = encode(state_of(100))

    assert len(delta_between(state, state)) < 40


def test_nothing_in_common_wants_a_keyframe():
    assert delta(os.urandom(50_000), os.urandom(50_000)) is None
    assert delta(prose(1, 50_000).encode(), prose(2, 50_000).encode()) is None
    assert delta(b"", b"first") is None
    assert delta(b"last", b"") is None
    assert delta(b"tiny", b"tina") is None


def test_a_chain_that_has_outgrown_its_keyframe_wants_a_new_one():
    small = 1000
    assert not wants_keyframe(keyframe_size=1000, chain_size=9000, chain_length=511, state_size=small)
    assert wants_keyframe(keyframe_size=1000, chain_size=1001, chain_length=512, state_size=small)
    assert not wants_keyframe(keyframe_size=1000, chain_size=1000, chain_length=512, state_size=small)
    assert wants_keyframe(keyframe_size=1000, chain_size=10, chain_length=4096, state_size=small)
    large = 1 << 28
    assert wants_keyframe(keyframe_size=1000, chain_size=1001, chain_length=5, state_size=large)
    assert not wants_keyframe(keyframe_size=1000, chain_size=1001, chain_length=4, state_size=large)


# ── a wrong base, and damage ─────────────────────────────────────────────────────────────────────


@pytest.mark.req("R102")
@pytest.mark.parametrize("at", [0, 30_000, -1], ids=["front", "middle", "end"])
def test_applying_to_another_state_is_noticed_wherever_it_differs(at):
    before = bytearray(prose(1, 60_000).encode())
    made = delta_between(bytes(before), bytes(before) + b" and more")
    before[at] ^= 1

    with pytest.raises(RecordDamaged):
        apply(bytes(before), made, limit=LIMIT)


def test_applying_to_a_state_of_another_length_says_so():
    before = prose(1, 10_000).encode()
    made = delta_between(before, before + b" and more")

    with pytest.raises(RecordDamaged, match="made for another state"):
        apply(before + b".", made, limit=LIMIT)


@pytest.mark.req("R95")
def test_a_changed_byte_of_a_delta_never_makes_another_state():
    before = prose(1, 10_000).encode()
    after = before[:5000] + random.Random(1).randbytes(40) + before[5000:]
    made = delta_between(before, after)
    noticed = 0

    for at in range(len(made)):
        changed = made[:at] + bytes([made[at] ^ 0x11]) + made[at + 1 :]
        try:
            assert apply(before, changed, limit=LIMIT) == after
        except RecordDamaged:
            noticed += 1
    assert noticed > len(made) * 0.9


@settings(max_examples=80)
@given(st.binary(max_size=80))
def test_random_bytes_are_no_delta(data):
    with pytest.raises(RecordDamaged):
        apply(b"a state", data, limit=LIMIT)


def test_a_delta_is_bound_by_the_limit():
    before = prose(1, 10_000).encode()
    made = delta_between(before, before + b"12345")

    assert len(apply(before, made, limit=10_005)) == 10_005
    with pytest.raises(RecordDamaged, match="the limit is"):
        apply(before, made, limit=10_004)


@pytest.mark.req("R95")
def test_a_delta_that_repeats_the_old_state_a_thousand_times_is_refused_before_it_is_made():
    before = os.urandom(100_000)
    honest = msgspec.msgpack.decode(delta_between(before, before + b"!"))
    copies, bomb = honest[5], zstd.pack_after(before[-65536:], bytes(100_000_000), 3)
    there_and_back = [0, 0, 100_000, 0, 0, -100_000] * 1000

    tracemalloc.start()
    for plan, packing, new_length, new in (
        (copies * 1000, 0, 1, b"!"),
        (there_and_back, 0, 1, b"!"),
        (copies, 1, 1, bomb),
        ([], 2, 100_001, bomb),
    ):
        forged = msgspec.msgpack.encode([*honest[:5], plan, packing, 0, new_length, new])
        with pytest.raises(RecordDamaged):
            apply(before, forged, limit=LIMIT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize(
    "plan",
    [[0, -5, 10], [0, 5, -10], [-1, 0, 10], [0, 9_999_999, 10], [0, 0], [0, 0, 2**63]],
    ids=str,
)
def test_copies_that_reach_outside_are_refused(plan):
    before = prose(1, 10_000).encode()
    honest = msgspec.msgpack.decode(delta_between(before, before + b"!"))
    honest[5] = plan

    with pytest.raises(RecordDamaged):
        apply(before, msgspec.msgpack.encode(honest), limit=LIMIT)


def test_a_delta_of_a_newer_format_is_refused_as_that():
    before = prose(1, 10_000).encode()
    honest = msgspec.msgpack.decode(delta_between(before, before + b"!"))
    honest[0] = frames._FORMAT + 1

    with pytest.raises(RecordDamaged, match="newer perdure"):
        apply(before, msgspec.msgpack.encode(honest), limit=LIMIT)
