"""Values to bytes and back: what comes back is what was stored, or it is refused by its path."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import enum
import math
import socket
import subprocess
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure._ground.encoding import class_fields as shapes
from perdure._ground.encoding.codec import decode, encode, keeper_of, peek, round_trip
from perdure.errors import InvalidInput, NotStorable, RecordDamaged

TAGGED = b"\xc1"


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


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Pair(NamedTuple):
    one: int
    two: float


# ── without an annotation ────────────────────────────────────────────────────────────────────────

NAIVE = dt.datetime(2024, 2, 29, 12, 0, 0, 1)  # noqa: DTZ001

# fmt: off
EXACT = [
    None, True, 0, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 10**400, -0.0, math.inf,
    "", "naïve 🙂", b"\x00\xff", [], {}, (), set(), frozenset({1, (2, 3)}), (1, [2, (3,)]), {"a": {1, 2}},
    {1: "int", "1": "str", 1.5: "float", None: 0, b"b": 1},
    {True: "yes"},
    {(1, 2): "tuple key", frozenset({3}): "set key", dt.date(2024, 2, 29): "date key"},
    dt.date(2024, 2, 29), dt.time(23, 59, 59, 999_999), NAIVE, NAIVE.replace(tzinfo=dt.UTC),
    dt.timedelta(days=-1, microseconds=1), Decimal("1.10"), Decimal("-Infinity"), UUID(int=7),
    Path("inbox/a.pdf"), {Path("/"): [Path("é")]},
]
# fmt: on


@pytest.mark.parametrize("value", EXACT, ids=repr)
def test_a_value_comes_back_with_the_same_type_and_content(value):
    back = decode(encode(value))

    assert type(back) is type(value)
    assert repr(back) == repr(value)


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.times()
    | st.datetimes() | st.timedeltas() | st.decimals() | st.uuids()
)  # fmt: skip
keys = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.dates() | st.uuids(),
    lambda inner: st.tuples(inner) | st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.sets(keys, max_size=4)
        | st.frozensets(keys, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(values)
def test_any_nesting_of_builtin_values_comes_back_as_it_was(value):
    data, live = round_trip(value)

    assert is_same(decode(data), value)
    assert is_same(live, value)


class Shade(enum.StrEnum):
    DARK = "dark"


class Count(int):
    pass


_ODD = [2**64, -(2**63) - 1, "\ud800", True, 1, None, math.nan, 1.0, Shade.DARK, Count(3), bytearray(b"x"), [1]]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([str, int, bool, bytes, type(None), float, Any]), values | st.sampled_from(_ODD))
def test_what_is_kept_by_one_annotation_is_what_a_round_trip_gives(as_type: Any, value: Any) -> None:
    kept = keeper_of(as_type)(value)
    if kept is not None:  # else it takes the tagged form, or none, and the round trip is asked
        data, live = round_trip(value, as_type)
        assert kept == (data, live) and type(kept[1]) is type(live)
        assert decode(data, as_type) == live


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=64) | st.binary(max_size=64).map(lambda tail: TAGGED + tail))
@pytest.mark.req("R95")
def test_random_bytes_are_read_or_called_damaged_and_nothing_else(data):
    with contextlib.suppress(RecordDamaged, InvalidInput):
        decode(data)


def test_a_nan_stays_a_nan_inside_and_outside_containers():
    assert math.isnan(decode(encode(math.nan)))
    assert math.isnan(decode(encode({"score": [math.nan]}))["score"][0])


def test_int_keys_are_not_turned_into_text():
    assert decode(encode({1: "a"})) == {1: "a"}


def test_plain_json_like_data_is_plain_msgpack_that_any_reader_understands():
    value = {"messages": [{"role": "user", "content": "hi"}], "n": 1}

    assert encode(value) == msgspec.msgpack.encode(value)


def test_what_msgpack_can_say_is_left_to_it_beside_what_it_cannot():
    messages = [{"role": "user", "n": 1}]

    assert msgspec.msgpack.encode(messages) in encode({"messages": messages, "at": (1, 2)})


def test_a_path_is_plain_text_where_its_annotation_says_what_it_is():
    @dataclass
    class Job:
        inbox: Path
        done: list[Path]

    job = Job(Path("inbox"), [Path("a.pdf")])

    assert round_trip(job, Job)[1] == job
    assert encode(Path("inbox"), Path) == encode("inbox")
    assert decode(encode("inbox"), Path) == Path("inbox")
    assert decode(encode({"inbox": Path("inbox")}, dict[str, str]), dict[str, str]) == {"inbox": Path("inbox")}


def test_a_field_that_was_never_set_is_not_set_when_it_comes_back():
    @dataclasses.dataclass
    class Page:
        url: str
        text: str = dataclasses.field(init=False)

    back = decode(encode(Page("x"), Page), Page)
    assert vars(back) == {"url": "x"}
    assert decode(encode([Page("x"), {1}])) == [{"url": "x"}, {1}]


def test_equal_sets_are_equal_bytes():
    assert encode({f"{n}" for n in range(50)}) == encode({f"{n}" for n in reversed(range(50))})


def test_an_aware_datetime_comes_back_as_the_same_moment_in_utc():
    berlin = dt.datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))

    for back in (decode(encode(berlin)), decode(encode((berlin,)))[0]):
        assert back == berlin
        assert back.tzinfo is dt.UTC


def test_a_moment_in_the_repeated_hour_of_autumn_keeps_its_side():
    second = dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)

    assert decode(encode([second])) == [dt.datetime(2024, 10, 27, 1, 30, tzinfo=dt.UTC)]


def test_subclasses_and_enums_come_back_as_equal_plain_values():
    class Name(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "not its content"

    class Count(int):
        pass

    value = {Name("n"): Count(3), "level": Level.HIGH, "o": OrderedDict(a=1), "pair": Pair(1, 2.0)}
    back = decode(encode(value))

    assert back == value
    assert [type(part) for part in (*back, *back.values())] == [str, str, str, str, int, int, dict, tuple]
    assert decode(encode([Colour.RED])) == ["red"]


def test_byte_buffers_come_back_as_bytes():
    assert decode(encode([bytearray(b"x"), memoryview(b"y"), ()])) == [b"x", b"y", ()]


def test_unregistered_classes_come_back_as_dicts_of_their_fields():
    back = decode(encode([Point(1, y=(2,)), Reply("hi"), Message(role="user", parts={"a"})]))

    assert back == [
        {"x": 1, "y": (2,)},
        {"text": "hi", "tokens": 0},
        {"role": "user", "parts": {"a"}, "replies": []},
    ]


def test_the_live_copy_is_what_will_be_read_and_shares_nothing_with_the_original():
    original = {"items": [1, 2], "point": Point(1)}
    data, live = round_trip(original)
    original["items"].append(3)

    assert live == decode(data) == {"items": [1, 2], "point": {"x": 1, "y": 0}}


# ── refused ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R26")
def test_a_socket_in_the_state_is_refused_by_its_path_with_what_to_do():
    with socket.socket() as live, pytest.raises(NotStorable) as refused:
        encode({"a": {"b": live}})

    assert refused.value.path == "a.b"
    assert "'a.b'" in str(refused.value) and "socket.socket" in str(refused.value)
    assert "make it again after a restart" in refused.value.do


@pytest.mark.req("R26")
@pytest.mark.parametrize(
    "value, path",
    [
        ({"a": {"b": [0, 1, 2, object()]}}, "a.b[3]"),
        ([{"x y": threading.Lock()}], "[0]['x y']"),
        ({7: {"k": print}}, "[7].k"),
        (Line([Point(object())]), "points[0].x"),
        ({"t": (1, [iter(())])}, "t[1][0]"),
        (object(), ""),
        ({"a": "\ud800"}, "a"),
        ({"a": [{"\ud800": 1}]}, "a[0]['\\ud800']"),
        ({"n": Message}, "n"),
        ({"e": [ValueError("x")]}, "e[0]"),
        ({"raw": msgspec.Raw(b"\x01")}, "raw"),
        ({"when": dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5)))}, "when"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_cannot_be_stored_is_refused_by_its_path(value, path):
    with pytest.raises(NotStorable) as refused:
        encode(value)

    assert refused.value.path == path


@pytest.mark.req("R26")
def test_a_value_that_contains_itself_is_refused_where_it_does():
    state: dict[str, Any] = {"a": [1]}
    state["a"].append({"again": state["a"]})

    with pytest.raises(NotStorable, match="contains itself") as refused:
        encode(state)
    assert refused.value.path == "a[1].again"


def test_the_same_list_in_two_places_is_no_cycle():
    shared = [(1,)]

    assert decode(encode([shared, shared])) == [[(1,)], [(1,)]]


def test_nesting_without_end_is_refused_in_writing_and_called_damaged_in_reading():
    deep: Any = ()
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(NotStorable, match="nested too deeply"):
        encode(deep)
    with pytest.raises(RecordDamaged, match="nested too deeply"):
        decode(b"\x91" * 100_000 + b"\x01")
    while deep:
        deep = deep[0]  # taken apart by hand: freeing it at once would recurse as deep


def test_keys_that_would_become_one_are_refused():
    with pytest.raises(NotStorable, match="come back as one"):
        encode({Colour.RED: 1, "red": 2})


def test_an_equality_that_raises_does_no_harm():
    class Touchy(dict[str, int]):
        def __eq__(self, other: object) -> bool:
            raise RuntimeError

        __hash__ = None  # type: ignore[assignment]

    assert decode(encode(Touchy(a=1))) == {"a": 1}


# ── damage, and what importing costs ─────────────────────────────────────────────────────────────


@pytest.mark.req("R95")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x01\x01",
        b"\xa1\xff",
        b"\x92\x01",
        b"\xdd\xff\xff\xff\xff",
        b"\x81\x80\x01",
        TAGGED + b"\xd4\x63\x00",
    ],
    ids=bytes.hex,
)
def test_malformed_bytes_are_called_damaged(data):
    with pytest.raises(RecordDamaged):
        decode(data)
    with pytest.raises(RecordDamaged):
        decode(data, list[int])
    with pytest.raises(RecordDamaged):
        peek(data)


def test_importing_the_bytes_layer_imports_no_heavy_library():
    heavy = "{'pydantic', 'cryptography', 'keyring', 'backports.zstd', 'compression.zstd', 'pickle'}"
    code = f"""
import sys
from perdure._ground.secrets import crypto
from perdure._ground.secrets import envelope
from perdure._ground.encoding import codec
from perdure._ground.encoding import deltas
sealed = envelope.seal(codec.encode({{'a': (1,)}}), kind='entry', bound_to='t', ring=crypto.KeyRing())
envelope.unseal(sealed, kind='entry', bound_to='t', ring=crypto.KeyRing())
print(sorted({heavy} & set(sys.modules)))
"""
    source = Path(shapes.__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(source)}, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


def is_same(one: Any, other: Any) -> bool:
    """Equal in content and in every type; a NaN is a NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return is_same([*one], [*other]) and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, (float, Decimal)):
        return repr(one) == repr(other)
    return bool(one == other)


def test_of_an_open_file_its_path_is_to_be_stored(tmp_path):
    with (tmp_path / "notes").open("w") as file, pytest.raises(NotStorable) as refused:
        encode({"file": file})
    assert refused.value.path == "file" and "store its path" in refused.value.do
