"""Add an item to a list inside encoded data, without decoding the rest. Pure.

Owns where a list begins and ends in the bytes. Each length precedes what it counts, so a list is found by stepping over
everything before it; once found, it is followed from append to append.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

Path = tuple[str | int, ...]

_decode_key = msgspec.msgpack.Decoder().decode
_U16, _U32 = struct.Struct(">H"), struct.Struct(">I")
# After the first byte: how many bytes belong to it, or how many bytes say how many.
_FIXED = {
    0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4,
    0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17,
}  # fmt: skip
_COUNTED = {
    0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1), 0xD9: (1, 0), 0xDA: (2, 0),
    0xDB: (4, 0),
}  # fmt: skip
_MANY_16, _MANY_32 = {0xDC: 1, 0xDE: 2}, {0xDD: 1, 0xDF: 2}


class Place(NamedTuple):
    """A list: where its head is and how long, how many items it has, and where it ends."""

    at: int
    head: int
    items: int
    end: int


class Edit(NamedTuple):
    """At `at`, `removed` bytes make way for `added`."""

    at: int
    removed: int
    added: bytes


def find_list(data: bytes, path: Path, at: int = 0) -> Place | None:
    """The list at this path of the value that begins at `at`; None if it is missing or not a plain list."""
    for step in path:
        kind, head, count = _container(data, at)
        if kind == "map":
            found = _value_of(data, at + head, count, step)
        elif kind == "list" and type(step) is int and 0 <= step < count:
            found = skip(data, at + head, step)
        else:
            return None
        if found is None:
            return None
        at = found
    kind, head, count = _container(data, at)
    return Place(at, head, count, skip(data, at + head, count)) if kind == "list" else None


def _value_of(data: bytes, at: int, count: int, key: str | int) -> int | None:
    for _ in range(count):
        value = skip(data, at, 1)
        if _decode_key(data[at:value]) == key:
            return value
        at = skip(data, value, 1)
    return None


def size_of(data: bytes, at: int = 0) -> int:
    """The number of keys or items in the map or list that begins at `at`."""
    return _container(data, at)[2]


def _container(data: bytes, at: int) -> tuple[str, int, int]:
    first = data[at]
    if 0x80 <= first <= 0x9F:
        return ("map" if first < 0x90 else "list"), 1, first & 0x0F
    if first in _MANY_16:
        return ("list" if first == 0xDC else "map"), 3, _U16.unpack_from(data, at + 1)[0]
    if first in _MANY_32:
        return ("list" if first == 0xDD else "map"), 5, _U32.unpack_from(data, at + 1)[0]
    return "other", 1, 0


def skip(data: bytes, at: int, values: int) -> int:
    """The start of the value after the next `values` ones."""
    left = values
    while left:
        left -= 1
        first = data[at]
        at += 1
        if first < 0x80 or first >= 0xE0:
            continue
        if first < 0x90:
            left += (first & 0x0F) * 2
        elif first < 0xA0:
            left += first & 0x0F
        elif first < 0xC0:
            at += first & 0x1F
        elif first in _COUNTED:
            size, more = _COUNTED[first]
            at += size + more + int.from_bytes(data[at : at + size], "big")
        elif first in _MANY_16:
            left += _MANY_16[first] * _U16.unpack_from(data, at)[0]
            at += 2
        elif first in _MANY_32:
            left += _MANY_32[first] * _U32.unpack_from(data, at)[0]
            at += 4
        else:
            at += _FIXED[first]
    return at


def append(place: Place, item: bytes) -> tuple[list[Edit], Place]:
    """The changes that append one item to the list, and where the list is afterwards."""
    count = place.items + 1
    head = _list_head(count)
    grown = len(head) - place.head
    return (
        [Edit(place.at, place.head, head), Edit(place.end, 0, item)],
        Place(place.at, len(head), count, place.end + grown + len(item)),
    )


def _list_head(count: int) -> bytes:
    if count < 16:
        return bytes((0x90 | count,))
    return b"\xdc" + _U16.pack(count) if count < 1 << 16 else b"\xdd" + _U32.pack(count)


def moved(places: Mapping[Path, Place], old: Place, new: Place, shift: int) -> dict[Path, Place]:
    """The places of the other lists after an append to one of them; a list inside it has to be found again.

    `shift` is how far everything has moved for another reason.
    """
    grown = (new.end - new.at) - (old.end - old.at)
    kept: dict[Path, Place] = {}
    for path, place in places.items():
        if place.end <= old.at:
            kept[path] = place._replace(at=place.at + shift, end=place.end + shift)
        elif place.at >= old.end:
            kept[path] = place._replace(at=place.at + shift + grown, end=place.end + shift + grown)
        elif place.at < old.at and place.end >= old.end:
            kept[path] = place._replace(at=place.at + shift, end=place.end + shift + grown)
    return kept


def path_of(path: str | Sequence[str | int]) -> Path:
    """`"plan.steps"`, or its keys one by one where a key has a dot in it."""
    return tuple(path.split(".")) if isinstance(path, str) else tuple(path)
