"""What changed between two states: lists are aligned by content, and paths lead to the places that differ."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from perdure._model import Change, diff, limited, spell_path


def items(number: int) -> list[dict[str, Any]]:
    return [{"text": f"item {at}", "size": at} for at in range(number)]


def test_an_item_put_at_the_head_of_a_long_list_is_one_change() -> None:
    before = {"files": items(2000)}
    after = {"files": [{"text": "new", "size": -1}, *items(2000)]}
    assert list(diff(before, after)) == [Change(("files", 0), "added", None, {"text": "new", "size": -1})]
    assert list(diff(after, before)) == [Change(("files", 0), "removed", {"text": "new", "size": -1})]


def test_an_item_that_changed_its_place_is_moved() -> None:
    before = items(100)
    after = [*before[:10], *before[11:60], before[10], *before[60:]]
    assert list(diff(before, after)) == [Change((59,), "moved", None, before[10], (10,))]


def test_a_changed_item_is_compared_with_the_one_that_has_its_id() -> None:
    before = [{"id": 1, "n": 1}, {"id": 2, "n": 2}, {"id": 3, "n": 3}]
    after = [{"id": 9, "n": 9}, {"id": 1, "n": 1}, {"id": 2, "n": 20}, {"id": 3, "n": 3}]
    assert list(diff(before, after)) == [
        Change((0,), "added", None, {"id": 9, "n": 9}),
        Change((2, "n"), "changed", 2, 20),
    ]


def test_items_without_a_name_are_compared_in_place_if_none_was_added() -> None:
    assert list(diff([1, [2], 3], [1, [5], 4])) == [Change((1, 0), "changed", 2, 5), Change((2,), "changed", 3, 4)]


def test_equal_values_of_another_type_have_changed() -> None:
    assert list(diff({"a": 1}, {"a": True})) == [Change(("a",), "changed", 1, True)]
    assert list(diff([1, 0], [1.0, 0])) == [Change((0,), "changed", 1, 1.0)]
    assert list(diff({"a": float("nan")}, {"a": float("nan")})) == []


def test_values_that_json_does_not_have_are_compared() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert list(diff({"at": at, "raw": b"x"}, {"at": at, "raw": b"x"})) == []
    assert [one.path for one in diff({"set": {1, 2}}, {"set": {1, 3}})] == [("set",)]


def test_many_alike_items_do_not_take_for_ever() -> None:
    before, after = [0] * 5000 + [1] * 5000, [1] * 5000 + [0] * 5001
    assert len(list(diff(before, after))) > 0


def test_what_is_left_off_is_counted_by_subtree() -> None:
    before = {"a": {str(n): 0 for n in range(30)}, "b": 1}
    after = {"a": {str(n): 1 for n in range(30)}, "b": 2}
    found = limited(diff(before, after), 10)
    assert len(found) == 10 and found.total == 31 and sum(count for _, count in found.left_off) == 21


@pytest.mark.parametrize("path, text", [((), ""), (("a", 3, "b"), "a[3].b"), ((0, 1), "[0][1]")])
def test_a_path_is_spelled_for_people(path: tuple[str | int, ...], text: str) -> None:
    assert spell_path(path) == text


plain = some.none() | some.booleans() | some.integers(-3, 3) | some.text("ab", max_size=2)
keys = some.sampled_from(["id", "name", "x", "y"])
states = some.recursive(plain, lambda one: some.lists(one, max_size=6) | some.dictionaries(keys, one, max_size=4))


@given(states, states)
def test_the_changes_lead_from_the_one_state_to_the_other(before: Any, after: Any) -> None:
    changes = list(diff(before, after))
    assert (changes == []) == (diff_by_type(before, after) is False)
    for change in changes:
        if change.kind != "removed":
            assert at(after, change.path) == change.after
        if change.kind == "removed":
            assert at(before, change.path) == change.before
        if change.moved_from is not None:
            assert at(before, change.moved_from) == change.after


@given(states)
def test_a_state_does_not_differ_from_its_copy(state: Any) -> None:
    assert list(diff(state, deepcopy(state))) == []


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        value = value[part]
    return value


def diff_by_type(before: Any, after: Any) -> bool:
    from perdure._model.records.state_merge import is_same

    return not is_same(before, after)
