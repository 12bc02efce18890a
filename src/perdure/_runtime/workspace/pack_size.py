"""Measure what a pack of git objects unpacks to, before git is given it.

A pack can grow without bound: contents that compress a thousandfold, and differences that copy the same stretch again
and again. Two kilobytes make gigabytes, which git holds in memory. So the pack is walked first, piece by piece, and
refused when the sizes it announces are too much, or are not what it holds.

    "PACK" · version (4) · objects (4) · each: kind and size · base of a difference · zlib … · SHA-256 of all
"""

from __future__ import annotations

import zlib
from typing import IO

_VERSION, _HASH = 2, 32
_COMMIT, _TREE, _BLOB, _TAG, _AFTER_OFFSET, _AFTER_NAME = 1, 2, 3, 4, 6, 7
_PIECE = 1 << 16
# Beyond that git takes contents through in pieces; all else it has in memory.
MOST_IN_MEMORY = 512 * 1024 * 1024
_LONGEST_NUMBER = 10
_BEGINNING = 2 * _LONGEST_NUMBER


def measure(pack: IO[bytes], *, most: int) -> int:
    """Measure the unpacked size of the objects in a pack.

    Raises:
        ValueError: they are more than `most`, one cannot be held in memory, or it is not a pack.
    """
    reader = _Reader(pack)
    if reader.take(4) != b"PACK" or int.from_bytes(reader.take(4)) != _VERSION:
        raise ValueError("it is not a pack")
    total = 0
    for _ in range(int.from_bytes(reader.take(4))):
        total += _measure_one(reader, most - total)
        if total > most:
            raise ValueError(f"it unpacks to more than {most:,} bytes")
    reader.take(_HASH)
    return total


def _measure_one(reader: _Reader, most: int) -> int:
    kind, size = _kind_and_size(reader)
    if kind not in (_COMMIT, _TREE, _BLOB, _TAG, _AFTER_OFFSET, _AFTER_NAME):
        raise ValueError(f"it holds an object of kind {kind}")
    if size > most or (kind != _BLOB and size > MOST_IN_MEMORY):
        raise ValueError(f"it holds an object of {size:,} bytes")
    if kind == _AFTER_OFFSET:
        _number(reader)
    elif kind == _AFTER_NAME:
        reader.take(_HASH)
    begin = reader.inflate(size)
    if kind not in (_AFTER_OFFSET, _AFTER_NAME):
        return size
    base, at = _number_in(begin, 0)
    made, _ = _number_in(begin, at)
    if max(base, made) > MOST_IN_MEMORY:
        raise ValueError(f"it holds a difference that makes {max(base, made):,} bytes")
    return made


def _kind_and_size(reader: _Reader) -> tuple[int, int]:
    byte = reader.take(1)[0]
    kind, size, shift = byte >> 4 & 7, byte & 15, 4
    while byte & 128:
        byte = reader.take(1)[0]
        size |= (byte & 127) << shift
        shift += 7
        if shift > 7 * _LONGEST_NUMBER:
            raise ValueError("it holds a size that has no end")
    return kind, size


def _number(reader: _Reader) -> None:
    for _ in range(_LONGEST_NUMBER):
        if not reader.take(1)[0] & 128:
            return
    raise ValueError("it holds a number that has no end")


def _number_in(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 7 * _LONGEST_NUMBER, 7):
        if at >= len(data):
            break
        byte = data[at]
        number, at = number | (byte & 127) << shift, at + 1
        if not byte & 128:
            return number, at
    raise ValueError("it holds a difference that has no beginning")


class _Reader:
    """A stream with what was read of it too early."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._ahead = file, b""

    def take(self, length: int) -> bytes:
        while len(self._ahead) < length:
            part = self._file.read(_PIECE)
            if not part:
                raise ValueError("it is cut off")
            self._ahead += part
        taken, self._ahead = self._ahead[:length], self._ahead[length:]
        return taken

    def inflate(self, size: int) -> bytes:
        """Pass over one compressed object, which is so large; how it begins."""
        unpacker, begin, got = zlib.decompressobj(), b"", 0
        data = self._ahead
        try:
            while not unpacker.eof:
                if not data and not (data := self._file.read(_PIECE)):
                    raise ValueError("it is cut off")
                part = unpacker.decompress(data, _PIECE)
                data = unpacker.unconsumed_tail
                got += len(part)
                if got > size:
                    raise ValueError("it holds an object that is larger than it says")
                begin = (begin + part[:_BEGINNING])[:_BEGINNING]
        except zlib.error as error:
            raise ValueError(f"it holds an object that cannot be unpacked ({error})") from None
        if got != size:
            raise ValueError("it holds an object that is smaller than it says")
        self._ahead = unpacker.unused_data
        return begin
