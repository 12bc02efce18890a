"""A list inside encoded data is made longer without decoding the rest."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure._ground.encoding import deltas as frames
from perdure._ground.encoding import list_splice as splicing

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=40), inner, max_size=20),
    max_leaves=30,
)
encode, decode = msgspec.msgpack.encode, msgspec.msgpack.decode


@given(values, values)
def test_every_value_is_stepped_over_to_its_end(one: Any, other: Any) -> None:
    data = encode(one) + encode(other)
    assert splicing.skip(data, 0, 1) == len(encode(one))
    assert splicing.skip(data, 0, 2) == len(data)


@given(st.dictionaries(st.text(), values, max_size=5), st.lists(values, max_size=20), st.lists(values, min_size=1))
def test_items_are_added_one_by_one_wherever_the_list_is(
    around: dict[str, Any], old: list[Any], new: list[Any]
) -> None:
    state = {**around, "inner": {"rows": old}, "end": 1}
    raw, path = encode(state), ("inner", "rows")
    place = splicing.find_list(raw, path)
    for item in new:
        assert place is not None
        edits, place = splicing.append(place, encode(item))
        before = raw
        raw, delta, _ = frames.splice(before, edits)
        assert frames.apply(before, delta, limit=1 << 30) == raw
        assert place == splicing.find_list(raw, path)
    assert decode(raw) == {**state, "inner": {"rows": [*old, *new]}}


@pytest.mark.parametrize("count", [14, 15, 16, 65_534, 65_535, 65_536])
def test_a_list_outgrows_the_head_it_has(count: int) -> None:
    raw = encode({"rows": list(range(count)), "end": "x"})
    place = splicing.find_list(raw, ("rows",))
    assert place is not None
    raw, *_ = frames.splice(raw, splicing.append(place, encode("new"))[0])
    assert decode(raw) == {"rows": [*range(count), "new"], "end": "x"}


def test_what_is_no_list_is_not_found() -> None:
    raw = encode({"a": {"b": 1}, "c": [[1], 2]})
    assert splicing.find_list(raw, ("a",)) is None and splicing.find_list(raw, ("a", "b", "x")) is None
    assert splicing.find_list(raw, ("c", 1)) is None and splicing.find_list(raw, ("c", 7)) is None
    assert splicing.find_list(raw, ("c", 0)) is not None and splicing.find_list(raw, ("nothing",)) is None
