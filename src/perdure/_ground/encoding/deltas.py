"""Incremental checkpoints: what changed between two states, as bytes. Pure.

A state is kept as a keyframe, whole, and deltas after it. A delta says which stretches of the new bytes
are stretches of the old ones, and carries the rest, compressed against the old state. An agent's state
mostly grows: a count near the front changes, and a tail is added before a short end. So we look for
equal blocks at the same distance from the front, then from the back, then at a few guessed distances.

Owns the delta's form and when a chain has outgrown its keyframe. Storing and pruning is the store's.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from operator import eq
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from perdure._ground.encoding import zstd
from perdure._ground.encoding.list_splice import Edit
from perdure.errors import RecordDamaged

LEVEL = 3
# Coarse blocks find the long stretches at the speed of memory, fine ones what lies between two close edits.
COARSE, FINE = 4096, 64
FINE_AT_MOST = 64 * 1024
SHORTEST_COPY = 16
# A name that got longer before a list that grew moves the list by neither of the two distances we know.
GUESSES, PROBE = 8, 48
# New data mostly resembles its neighbourhood.
WINDOW = 64 * 1024
# When there is more new than this, zstd gets the whole old state to search.
WHOLE_SEARCH_FROM = 32 * 1024
LONGEST_CHAIN = 512
# Bytes put together on the way to a state: about half a second.
MOST_WORK = 1 << 30

_FORMAT = 1
_STORED, _AFTER_WINDOW, _AFTER_WHOLE = 0, 1, 2
_MARK = 4096
_EQUAL = re.compile(b"\1+")


class _Copy(NamedTuple):
    """current[at : at + length] is previous[start : start + length]."""

    at: int
    start: int
    length: int


class _Delta(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    format: int
    previous_length: int
    previous_mark: int
    current_length: int
    current_crc: int
    plan: list[int]  # new bytes, then start and length of a copy, and so on; the rest is new
    packing: int
    window_start: int
    new_length: int
    new: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Delta)


def delta(previous: bytes, current: bytes, crc: int | None = None) -> bytes | None:
    """The delta by which `apply` makes `current` from `previous`; None if a keyframe is the better choice. `crc` is the
    current state's, if it is known."""
    if not previous or not current:
        return None
    copies = _find_copies(previous, current)
    if not copies and COARSE < len(current) <= WINDOW:
        return None  # nothing stayed: packing it after the old state would save a tenth, for three times the work
    plan, new = _split(current, copies)
    packing, window_start, packed = _pack_new(previous, new, copies, len(current))
    crc = crc32(current) if crc is None else crc
    made = _encoded(previous, current, crc, plan, packing, window_start, len(new), packed)
    return made if _is_worth_it(len(made), current) else None


class Spliced(NamedTuple):
    current: bytes
    delta: bytes
    crc: int  # of the current state


def splice(previous: bytes, edits: Sequence[Edit]) -> Spliced:
    """The state after these edits, which are in order, and its delta: nothing has to be searched for."""
    plan: list[int] = []
    new: list[bytes] = []
    pieces: list[bytes | memoryview] = []
    old = memoryview(previous)  # stretches to copy once, into their new place
    at, carried = 0, 0
    for edit in edits:
        if edit.at > at:
            plan += (carried, at, edit.at - at)
            pieces.append(old[at : edit.at])
            carried = 0
        new.append(edit.added)
        pieces.append(edit.added)
        carried += len(edit.added)
        at = edit.at + edit.removed
    if at < len(previous):
        plan += (carried, at, len(previous) - at)
        pieces.append(old[at:])
    current, added = b"".join(pieces), b"".join(new)
    start = max(0, min(edits[-1].at - WINDOW * 3 // 4, len(previous) - WINDOW))
    packed = zstd.pack_after(previous[start : start + WINDOW], added, LEVEL)
    how = (_AFTER_WINDOW, start, packed) if len(packed) < len(added) else (_STORED, 0, added)
    packing, start, packed = how
    crc = crc32(current)
    return Spliced(current, _encoded(previous, current, crc, plan, packing, start, len(added), packed), crc)


def _encoded(
    previous: bytes,
    current: bytes,
    crc: int,
    plan: list[int],
    packing: int,
    window_start: int,
    new_length: int,
    packed: bytes,
) -> bytes:
    marks = (len(previous), _mark(previous), len(current), crc)
    return _encoder.encode(_Delta(_FORMAT, *marks, plan, packing, window_start, new_length, packed))


def apply(previous: bytes, delta: bytes, *, limit: int) -> bytes:
    """The state that the delta was made for.

    Raises:
        RecordDamaged: the delta is broken, was made for another state, or makes more than the limit.
    """
    try:
        parts = _decoder.decode(delta)
        _check_fit(parts, previous, limit)
        current = b"".join(_pieces(previous, parts))
    except ValueError as error:
        raise RecordDamaged("a checkpoint's delta", str(error)) from None
    if len(current) != parts.current_length or crc32(current) != parts.current_crc:
        raise RecordDamaged("a checkpoint's delta", "it does not make the state it was made for")
    return current


def length_of(delta: bytes) -> int:
    """The number of bytes of the state that a delta makes.

    Raises:
        RecordDamaged: it is not a delta.
    """
    try:
        return _decoder.decode(delta).current_length
    except ValueError as error:
        raise RecordDamaged("a checkpoint's delta", str(error)) from None


def wants_keyframe(keyframe_size: int, chain_size: int, chain_length: int, state_size: int) -> bool:
    """Whether to write a keyframe instead of the next delta.

    Only when the chain has outgrown its keyframe in bytes, and reading through it has become costly: many links, or
    links of a large state, each of which must be applied.
    """
    is_long = chain_length >= LONGEST_CHAIN or chain_length * state_size > MOST_WORK
    return is_long and (chain_size > keyframe_size or chain_length >= 8 * LONGEST_CHAIN)


# ── finding what stayed ──────────────────────────────────────────────────────────────────────────


def _find_copies(previous: bytes, current: bytes) -> list[_Copy]:
    shifts = dict.fromkeys((0, len(current) - len(previous)))
    copies: list[_Copy] = []
    for shift in shifts:
        _add_copies(copies, previous, current, shift, COARSE)
    for _ in range(GUESSES):
        guess = _guess_shift(previous, current, copies)
        if guess is None or guess in shifts:
            break
        shifts[guess] = None
        _add_copies(copies, previous, current, guess, COARSE)
    if sum(end - begin for begin, end in _gaps(copies, len(current))) <= FINE_AT_MOST:
        for shift in shifts:
            _add_copies(copies, previous, current, shift, FINE)
    return copies


def _add_copies(copies: list[_Copy], previous: bytes, current: bytes, shift: int, block: int) -> None:
    for begin, end in list(_gaps(copies, len(current))):
        copies += _find_in_gap(previous, current, begin, end, shift, block)
    copies.sort()


def _guess_shift(previous: bytes, current: bytes, copies: list[_Copy]) -> int | None:
    """The distance by which the middle of the largest gap has moved, from a few of its bytes; None if they are new."""
    begin, end = max(_gaps(copies, len(current)), key=_width, default=(0, 0))
    if end - begin < COARSE:
        return None
    middle = (begin + end) // 2
    probe = current[middle : middle + PROBE]
    near = max(0, middle - WINDOW)
    found = previous.find(probe, near, near + 2 * WINDOW)
    if found < 0:
        found = previous.find(probe)
    return None if found < 0 else middle - found


def _gaps(copies: list[_Copy], end: int) -> Iterator[tuple[int, int]]:
    at = 0
    for copy in copies:
        if copy.at > at:
            yield at, copy.at
        at = copy.at + copy.length
    if end > at:
        yield at, end


def _width(gap: tuple[int, int]) -> int:
    return gap[1] - gap[0]


def _find_in_gap(previous: bytes, current: bytes, begin: int, end: int, shift: int, block: int) -> list[_Copy]:
    """Stretches of the gap that the old state has `shift` bytes earlier, grown to the byte at both ends."""
    begin, end = max(begin, shift), min(end, len(previous) + shift)
    copies = []
    free = begin
    for first, last in _equal_runs(previous, current, begin, end, shift, block):
        at = first - _equal_before(previous, current, first, shift, min(first - free, block))
        stop = last + _equal_after(previous, current, last, shift, min(end - last, block))
        if stop - at >= SHORTEST_COPY:
            copies.append(_Copy(at, at - shift, stop - at))
            free = stop
    return copies


def _equal_runs(
    previous: bytes, current: bytes, begin: int, end: int, shift: int, block: int
) -> Iterator[tuple[int, int]]:
    if begin >= end:
        return
    cut, last = _cutter(block), end - (end - begin) % block
    old, new = memoryview(previous)[begin - shift : last - shift], memoryview(current)[begin:last]
    equal = bytes(map(eq, cut(old), cut(new)))  # a byte for each block, and none of Python's own steps
    if last < end:
        equal += bytes((previous[last - shift : end - shift] == current[last:end],))
    for run in _EQUAL.finditer(equal):
        yield begin + run.start() * block, min(begin + run.end() * block, end)


@cache
def _cutter(block: int) -> Callable[[memoryview], Iterator[tuple[Any, ...]]]:
    return struct.Struct(f"{block}s").iter_unpack


def _equal_after(previous: bytes, current: bytes, at: int, shift: int, most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if current[at + low : at + middle] == previous[at - shift + low : at - shift + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _equal_before(previous: bytes, current: bytes, at: int, shift: int, most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if current[at - middle : at - low] == previous[at - shift - middle : at - shift - low]:
            low = middle
        else:
            high = middle - 1
    return low


# ── the delta's form ─────────────────────────────────────────────────────────────────────────────


def _split(current: bytes, copies: list[_Copy]) -> tuple[list[int], bytes]:
    """The plan by which the state is put together, and the bytes that are not in the old one."""
    plan: list[int] = []
    pieces: list[bytes] = []
    at = 0
    for copy in copies:
        pieces.append(current[at : copy.at])
        plan += (copy.at - at, copy.start, copy.length)
        at = copy.at + copy.length
    pieces.append(current[at:])
    return plan, b"".join(pieces)


def _pack_new(previous: bytes, new: bytes, copies: list[_Copy], end: int) -> tuple[int, int, bytes]:
    if len(new) > WHOLE_SEARCH_FROM:
        packing, start, packed = _AFTER_WHOLE, 0, zstd.pack_after(previous, new, LEVEL)
    else:
        start = _window_start(previous, copies, end)
        packing, packed = _AFTER_WINDOW, zstd.pack_after(previous[start : start + WINDOW], new, LEVEL)
    return (packing, start, packed) if len(packed) < len(new) else (_STORED, 0, new)


def _window_start(previous: bytes, copies: list[_Copy], end: int) -> int:
    """The start of the window around the largest gap; most of the window lies before it."""
    begin, _ = max(_gaps(copies, end), key=_width, default=(0, 0))
    before = max((copy for copy in copies if copy.at < begin), default=_Copy(0, 0, 0))
    edit = before.start + before.length
    return max(0, min(edit - WINDOW * 3 // 4, len(previous) - WINDOW))


def _mark(state: bytes) -> int:
    # Tells a wrong base early and cheaply. The proof is the checksum of the state that is made.
    return crc32(state[-_MARK:], crc32(state[:_MARK]))


def _is_worth_it(size: int, current: bytes) -> bool:
    if size * 8 <= len(current):
        return True
    # A delta nearly as large as a keyframe only makes the chain longer.
    return size * 4 <= 3 * len(zstd.pack(current, 1))


def _check_fit(parts: _Delta, previous: bytes, limit: int) -> None:
    if parts.format != _FORMAT:
        raise ValueError(f"written by a newer perdure (format {parts.format})")
    if parts.previous_length != len(previous) or parts.previous_mark != _mark(previous):
        raise ValueError("it was made for another state than this one")
    if not 0 <= parts.new_length <= parts.current_length <= limit:
        raise ValueError(f"it makes {parts.current_length:,} bytes; the limit is {limit:,}")


def _pieces(previous: bytes, parts: _Delta) -> Iterator[bytes | memoryview]:
    """The new state, piece by piece, never more of it than the delta announces."""
    new, old = memoryview(_unpack_new(previous, parts)), memoryview(previous)
    taken, made = 0, 0
    for index in range(0, len(parts.plan), 3):
        carried, start, length = parts.plan[index : index + 3]
        made += carried + length
        if min(carried, start, length) < 0 or start + length > len(previous) or made > parts.current_length:
            raise ValueError("its copies reach outside the states")
        yield new[taken : taken + carried]
        yield old[start : start + length]
        taken += carried
    yield new[taken:]


def _unpack_new(previous: bytes, parts: _Delta) -> bytes:
    if parts.packing == _STORED:
        return parts.new
    if parts.packing == _AFTER_WHOLE:
        return zstd.unpack(parts.new, parts.new_length, previous)
    if parts.packing != _AFTER_WINDOW or parts.window_start < 0:
        raise ValueError("its new bytes are packed in a way we do not know")
    return zstd.unpack(parts.new, parts.new_length, previous[parts.window_start : parts.window_start + WINDOW])
