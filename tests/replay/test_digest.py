"""Two calls are the same call when their arguments come to the same, however they were built or written."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure._durable.attempt.calls.call import Call
from perdure._replay import SPELLED, digest, plain_digest
from perdure._replay.digest import spell
from perdure.errors import InvalidInput

_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
_DATA = st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


def of(*args: Any, **kwargs: Any) -> bytes:
    return digest(args, kwargs)


@given(_DATA, _DATA)
def test_different_data_has_different_digests_and_equal_data_equal_ones(one: Any, other: Any) -> None:
    # repr tells 1 from 1.0 and True, as a digest does; equal dicts are brought into one order first.
    assert (of(one) == of(other)) == (_spelled(one) == _spelled(other))


def _spelled(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_spelled(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_spelled, value)) + "]"
    return repr(value)


@given(st.lists(_LEAVES | st.floats() | st.text(max_size=3) | st.tuples(st.integers()), max_size=4))
def test_a_plain_digest_is_the_digest_and_spells_its_arguments(args: list[Any]) -> None:
    found = plain_digest(tuple(args))
    if found is not None:
        assert found == of(*args) and found[:1] == SPELLED
        assert spell(found) == ", ".join(map(repr, args))


def test_the_order_of_keys_and_of_sets_does_not_count() -> None:
    assert of({"a": 1, "b": [2]}) == of(OrderedDict(b=[2], a=1))
    assert of({1: "x", 2: "y"}) == of({2: "y", 1: "x"})
    names = [f"name-{n}" for n in range(50)]
    assert of({*names}) == of({*names[25:], *names[:25]}) == of(frozenset(names))
    assert of({"a", "b"}) != of(["a", "b"])


def test_a_field_that_has_its_default_is_left_out() -> None:
    @dataclasses.dataclass
    class Before:
        name: str

    @dataclasses.dataclass
    class After:
        name: str
        tries: int = 3
        tags: list[str] = dataclasses.field(default_factory=list)

    class Struct(msgspec.Struct):
        name: str
        tries: int = 3

    class Model(pydantic.BaseModel):
        name: str
        tries: int = 3

    assert of(Before("x")) == of(After("x")) == of(Struct("x"))
    assert of(After("x")) != of(After("x", tries=4))
    assert of(Model(name="x")) == of(Model(name="x", tries=3)) != of(Model(name="x", tries=4))


def test_a_plain_value_of_a_class_of_its_own_counts_as_the_value_it_is() -> None:
    class Text(str):
        def __str__(self) -> str:
            return f"text at {id(self)}"

    class Number(int):
        pass

    class Share(float):
        pass

    class Data(bytes):
        pass

    assert of(Text("x")) == of("x") != of(Text("y"))
    assert of({"page": [Text("x"), Number(2**70)]}) == of({"page": ["x", 2**70]})
    assert of([Number(3), Share(0.5), Data(b"z")]) == of([3, 0.5, b"z"])


def test_a_model_that_is_a_list_counts_by_what_it_holds() -> None:
    class Pages(pydantic.RootModel[list[int]]):
        root: list[int] = [1]

    assert of(Pages([1, 2])) == of(Pages([1, 2])) != of(Pages([2, 1]))
    assert of(Pages()) != of(Pages([2]))


def test_a_field_that_was_never_set_is_left_out() -> None:
    @dataclasses.dataclass
    class Page:
        url: str
        text: str = dataclasses.field(init=False)

    read = Page("x")
    read.text = "what it says"
    assert of(Page("x")) == of(Page("x")) != of(read)


def test_what_is_not_json_is_told_apart_too() -> None:
    class Colour(Enum):
        RED = "red"
        BLUE = "blue"

    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    values = [
        Colour.RED, Colour.BLUE, moment, moment + timedelta(seconds=1), Decimal("1.50"), Decimal("1.5"), UUID(int=1),
        UUID(int=2), Path("/a"), Path("/b"), 2**80, 2**80 + 1, float("nan"), "\udcff", "\udcfe", Before, int,
    ]  # fmt: skip
    assert len({of(value) for value in values}) == len(values)
    assert of(moment) == of(moment.astimezone(timezone(timedelta(hours=2))))


class Before:
    pass


def test_a_keyword_is_no_dict_in_the_last_place() -> None:
    assert of(1, a=2) != of([1], {"a": 2})


@pytest.mark.parametrize("wrong", [lambda: 1, (n for n in range(3)), object(), open, iter([])])
def test_arguments_that_are_no_data_are_refused_by_name(wrong: Any) -> None:
    def work(thing: Any) -> None: ...

    with pytest.raises(InvalidInput, match=r"work cannot be recorded: an argument of type") as refused:
        Call(work).digest((wrong,), {})
    assert "identity=" in refused.value.do and refused.value.kept == "nothing ran"


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidInput, match="nested too deeply"):
        Call(lambda thing: None, name="work").digest((endless,), {})


# ── how a call is written ────────────────────────────────────────────────────────────────────────


def test_a_call_is_the_same_by_position_by_keyword_and_with_its_defaults_spelled_out() -> None:
    def work(a: int, b: int = 2, *, c: int = 3) -> None: ...

    call = Call(work)
    same = [((1,), {}), ((), {"a": 1}), ((1, 2), {}), ((1,), {"b": 2}), ((), {"b": 2, "a": 1}), ((1,), {"c": 3})]
    assert len({call.digest(*spelled) for spelled in same}) == 1
    others = [((2,), {}), ((1, 3), {}), ((1,), {"c": 4}), ((1, 2), {"c": 4}), ((1,), {"b": 3})]
    assert call.digest((1, 3), {}) == call.digest((1,), {"b": 3})
    assert len({call.digest(*spelled) for spelled in [*others[:3], same[0]]}) == 4


def test_self_does_not_count_and_extra_positional_arguments_do() -> None:
    class Agent:
        def work(self, a: int, *more: int) -> None: ...

    call = Call(Agent.work)
    assert call.digest((Agent(), 1), {}) == call.digest((Agent(), 1), {})
    assert call.digest((Agent(), 1), {}) != call.digest((Agent(), 1, 2), {})


def test_identity_narrows_what_counts() -> None:
    call = Call(lambda client, url: None, name="get", identity=lambda client, url: url)
    assert call.digest((object(), "a"), {}) == call.digest((object(), "a"), {})
    assert call.digest((object(), "a"), {}) != call.digest((object(), "b"), {})
