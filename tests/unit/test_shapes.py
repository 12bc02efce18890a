"""Classes: what is registered, or named in an annotation, comes back as itself."""

from __future__ import annotations

import datetime as dt
import enum
import math
import socket
import sys
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar
from uuid import UUID

import msgspec
import pydantic
import pytest

from perdure._ground.encoding import class_fields as shapes
from perdure._ground.encoding.codec import decode, encode, peek, register, round_trip
from perdure.errors import InvalidInput, NotStorable

T = TypeVar("T")
NAIVE = dt.datetime(2024, 2, 29, 12, 0, 0, 1)  # noqa: DTZ001


@dataclass
class Point:
    x: float
    y: Any = 0


@dataclass
class Line:
    points: list[Point]


class Reply(msgspec.Struct):
    text: str
    tokens: int = 0


class Message(pydantic.BaseModel):
    role: str
    parts: set[str] = set()
    replies: list[Message] = []


class Aliased(pydantic.BaseModel):
    name: str = pydantic.Field(alias="the-name")


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Pair(NamedTuple):
    one: int
    two: float


class Plan(TypedDict, total=False):
    goal: str
    done: set[int]


@dataclass
class Box(Generic[T]):
    content: T


@dataclass(eq=False)
class Incomparable:
    name: str


@pytest.fixture(autouse=True)
def fresh_registry(monkeypatch):
    monkeypatch.setattr(shapes, "_registered", {})
    shapes.known_to.cache_clear()
    yield
    shapes.known_to.cache_clear()


# ── registered classes ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "value",
    [Point(math.inf, (1,)), Reply("hi", 2), Message(role="user", parts={"a"}), Colour.RED, Pair(1, 2.0)],
    ids=lambda value: type(value).__name__,
)
def test_a_registered_class_comes_back_as_itself_from_anywhere(value):
    register(type(value))
    back = decode(encode({"deep": [(value,)]}))["deep"][0][0]

    assert type(back) is type(value)
    assert back == value


def test_what_a_registered_class_mentions_in_its_fields_is_known_too():
    register(Line)

    assert decode(encode([Line([Point(1, {2})])])) == [Line([Point(1, {2})])]


def test_a_field_that_was_not_set_on_a_model_is_still_not_set():
    register(Message)
    back = decode(encode([Message(role="user", replies=[Message(role="tool", parts={"a"})])]))[0]

    assert back.model_fields_set == {"role", "replies"}
    assert back.replies[0].model_fields_set == {"role", "parts"}


def test_a_field_that_init_does_not_take_comes_back_too():
    @register(name="tally")
    @dataclass(frozen=True)
    class Tally:
        start: int
        total: int = field(init=False, default=0)

    tally = Tally(1)
    object.__setattr__(tally, "total", 9)

    assert decode(encode([tally])) == [tally]


def test_a_class_that_gained_a_field_and_lost_another_still_reads_old_records():
    @dataclass
    class Old:
        kept: int
        dropped: int = 1

    @dataclass
    class New:
        kept: int
        added: str = "default"

    register(Old, name="thing")
    data = encode([Old(5)])
    shapes._registered.clear()
    register(New, name="thing")

    assert decode(data) == [New(5, "default")]


def test_a_class_that_changes_its_fields_when_made_is_refused():
    @register
    @dataclass
    class Counting:
        n: int

        def __post_init__(self) -> None:
            self.n += 1

    with pytest.raises(NotStorable, match="does not come back as it was"):
        encode([Counting(1)])


def test_two_classes_under_one_name_are_refused():
    register(Point, name="thing")

    with pytest.raises(InvalidInput, match="'thing' is taken by"):
        register(Reply, name="thing")
    assert register(Point, name="thing") is Point


def test_a_class_without_fields_cannot_be_registered():
    with pytest.raises(InvalidInput, match="no fields"):
        register(socket.socket)


def test_a_class_nobody_registered_is_named_in_reading_and_the_record_kept():
    register(Point, name="point")
    data = encode([Point(1)])
    shapes._registered.clear()
    shapes.known_to.cache_clear()

    with pytest.raises(InvalidInput, match="'point'") as refused:
        decode(data)
    assert "register" in refused.value.do and "unchanged" in refused.value.kept
    assert peek(data) == [{"x": 1, "y": 0}]


def test_a_name_in_the_data_never_leads_to_an_import():
    module = "this"  # prints a poem when it is imported
    sys.modules.pop(module, None)
    data = b"\xc1" + msgspec.msgpack.encode(
        msgspec.msgpack.Ext(12, msgspec.msgpack.encode([f"{module}.Zen", {"system": "rm"}]))
    )

    with pytest.raises(InvalidInput):
        decode(data)
    assert module not in sys.modules


def test_an_unregistered_subclass_of_a_known_class_is_refused_rather_than_cut_down():
    @dataclass
    class Point3(Point):
        z: float = 0

    with pytest.raises(NotStorable, match="not registered") as refused:
        encode(Point3(1), Point)
    assert "Point3" in refused.value.do


# ── with an annotation ───────────────────────────────────────────────────────────────────────────

TYPED = [
    (Point(1.5, "y"), Point),
    (Line([Point(1.0)]), Line),
    (Reply("hi"), Reply),
    (Message(role="user", parts={"a"}, replies=[]), Message),
    (Message(role="user", replies=[Message(role="tool")]), Message),
    (Aliased(**{"the-name": "n"}), Aliased),
    ([Message(role="user", parts={"a"}, replies=[])], list[Message]),
    (Plan(goal="g", done={1}), Plan),
    (Pair(1, 2.5), Pair),
    (Colour.RED, Colour),
    (Level.HIGH, Level),
    ({1, 2}, set[int]),
    ((1, 2, 3), tuple[int, ...]),
    (frozenset({1}), frozenset[int]),
    (Decimal("1.10"), Decimal),
    (UUID(int=1), UUID),
    (NAIVE, dt.datetime),
    (NAIVE.replace(tzinfo=dt.UTC), dt.datetime),
    (dt.date(2024, 1, 1), dt.date | None),
    (None, Point | None),
    (None, None),
    (Point(1.0), Point | Line),
    (Line([]), Point | Line | None),
    (Box((1, 2)), Box[tuple[int, ...]]),
    (Incomparable("x"), Incomparable),
    ({(1, 2): "v"}, dict[tuple[int, int], str]),
    (Pair(1, math.nan), Pair),
    (Point(math.nan), Point),
]


@pytest.mark.parametrize("value, as_type", TYPED, ids=lambda part: repr(part)[:40])
def test_an_annotated_value_comes_back_as_its_own_type(value, as_type):
    data, live = round_trip(value, as_type)
    back = decode(data, as_type)

    assert type(back) is type(live) is type(value)
    assert repr(back) == repr(live) == repr(value) or isinstance(value, Incomparable)
    assert not isinstance(value, Incomparable) or back.name == value.name


@pytest.mark.parametrize(
    "value, as_type",
    [
        ((1, 2), list[int]),
        ("text", int),
        ([1], set[int]),
        (True, int),
        ("2024-01-01T00:00:00Z", dt.datetime),
        (2**60 + 1, float),
        ({"goal": "g", "extra": 1}, Plan),
        (Line((Point("x"),)), Line),  # type: ignore[arg-type]
        ([1, "two", (3,)], "an annotation nobody can resolve"),
        (2**70, int),
    ],
    ids=lambda part: repr(part)[:40],
)
def test_a_value_that_does_not_fit_its_annotation_still_comes_back_as_it_was(value, as_type):
    back = decode(encode(value, as_type), as_type)

    assert type(back) is type(value)
    assert repr(back) == repr(value)


def test_a_model_that_was_set_in_part_keeps_knowing_it_by_annotation():
    back = decode(encode(Message(role="user"), Message), Message)

    assert back.model_fields_set == {"role"}


def test_a_stored_value_the_annotation_no_longer_allows_is_not_called_damaged():
    data = encode({"x": "text"})

    with pytest.raises(InvalidInput, match="does not fit") as refused:
        decode(data, Reply)
    assert "unchanged" in refused.value.kept


def test_two_unregistered_classes_of_one_name_are_told_apart_by_registering():
    def make(module: str) -> type[Any]:
        return dataclass(type("Same", (), {"__annotations__": {"n": int}, "__module__": module}))

    one, other = make("one"), make("other")
    written_alone = encode(one(math.nan), one)
    for cls in (one, other):
        with pytest.raises(NotStorable, match="two classes are called 'Same'"):
            encode(cls(math.nan), one | other)
    with pytest.raises(InvalidInput, match="'Same'"):
        decode(written_alone, one | other)

    register(other, name="other-same")
    for cls in (one, other):
        assert isinstance(decode(encode(cls(math.nan), one | other), one | other), cls)
    assert isinstance(decode(written_alone, one | other), one)
