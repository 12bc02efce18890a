"""The envelope around every stored blob: its kind, how it is packed, which key seals it, a checksum.

    format · flags · length of kind · length of key id · kind · key id · raw length (4) · body · crc32 (4)

The checksum covers everything before it, so one flipped bit anywhere is noticed. It begins with the record's place, if
it has one (the position of an entry in its journal), so a record in the place of another is noticed too. AES-GCM binds
a sealed body to the whole header and to the task, so it cannot be passed off as another task's or kind's.

Owns the layout and the order of packing: compress, then seal. Compressing itself is in zstd.py, sealing
in crypto.py, and the payload's own form in codec.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from zlib import crc32

from perdure._ground.encoding import zstd
from perdure._ground.secrets import crypto
from perdure._ground.secrets.crypto import KeyRing
from perdure.errors import InvalidInput, RecordDamaged, TooLarge

MAX_BYTES = 256 * 1024 * 1024

# Below this, what zstd saves is not worth its time.
WORTH_PACKING = 256
# Measured on agent states: up to here level 1 takes two thirds of the time of level 3 for the same size.
SMALL = 32 * 1024
LEVEL_SMALL, LEVEL = 1, 3

_FORMAT = 1
_PACKED, _SEALED = 1, 2
_FIXED, _LENGTH, _CHECKSUM = 4, 4, 4
_checksum = Struct("<I").pack
# The crc32 of any bytes followed by their own crc32, lowest byte first, whatever they are.
_CRC_OF_WHOLE = 0x2144DF1C


def seal(payload: bytes, kind: str, bound_to: str, ring: KeyRing, compress: bool = True, place: int = 0) -> bytes:
    """The payload in its envelope, sealed if the ring has a current key.

    Raises:
        TooLarge: the payload exceeds the limit for a record.
    """
    return close(_seal_open(payload, kind, bound_to, ring, compress), place)


def close(data: bytes, place: int) -> bytes:
    """An open envelope with its checksum; one for this place, if it is not 0."""
    return data + _checksum(crc32(data, place))


def _seal_open(payload: bytes, kind: str, bound_to: str, ring: KeyRing, compress: bool = True) -> bytes:
    """The payload in its envelope, without the checksum."""
    length = len(payload)
    if length < WORTH_PACKING and ring.current is None:  # most are so
        return _plain_heads(kind)[length] + payload
    if length > MAX_BYTES:
        raise TooLarge(f"the {kind} of {bound_to}", length, MAX_BYTES)
    body, flags = payload, 0
    if compress and length >= WORTH_PACKING:
        packed = zstd.pack(payload, LEVEL_SMALL if length <= SMALL else LEVEL)
        if len(packed) < length:
            body, flags = packed, _PACKED
    key = ring.current
    if key is None:
        return _head(flags, kind, "") + length.to_bytes(_LENGTH) + body
    head = _head(flags | _SEALED, kind, key.id) + length.to_bytes(_LENGTH)
    return head + crypto.encrypt(key, body, head + bound_to.encode())


def sealer_of(kind: str) -> Callable[[bytes, str, KeyRing], bytes]:
    """`seal` for one frequent kind; its result is open, and is closed when its place is known."""
    heads = _plain_heads(kind)

    def seal_one(payload: bytes, bound_to: str, ring: KeyRing) -> bytes:
        length = len(payload)
        if length < WORTH_PACKING and ring.current is None:
            return heads[length] + payload
        return _seal_open(payload, kind, bound_to, ring)

    return seal_one


def is_whole(data: bytes, place: int = 0) -> bool:
    """True if a record's checksum fits its bytes and its place; older records do not include theirs."""
    return crc32(data, place) == _CRC_OF_WHOLE or (place != 0 and crc32(data) == _CRC_OF_WHOLE)


def unseal(data: bytes, *, kind: str, bound_to: str, ring: KeyRing, limit: int = MAX_BYTES, place: int = 0) -> bytes:
    """The payload sealed as this kind for this task. `place`: its position; older records do not include it.

    Raises:
        RecordDamaged: it was changed, is another kind's or task's, or unpacks past the limit.
        KeyMissing: its key is not in the ring.
    """
    try:
        if type(data) is not bytes:
            raise ValueError(f"it is not bytes but {type(data).__name__}")
        head, flags, found_kind, key_id, length = _read_head(data)
        if not is_whole(data, place):
            raise ValueError("its checksum does not fit its bytes" + (", or it belongs in another place" * bool(place)))
        if found_kind != kind.encode():
            raise ValueError(f"it is a record of kind {found_kind.decode(errors='replace')!r}")
        if length > limit:
            raise ValueError(f"it announces {length:,} bytes; the limit is {limit:,}")
        body = data[head:-_CHECKSUM]
        if flags & _SEALED:
            body = _open(ring, key_id, body, data[:head], bound_to)
        elif ring.sealed_only:
            raise ValueError("it is not sealed, and PERDURE_KEY says sealed-only (without it, `keys rotate` seals it)")
        if flags & _PACKED:
            return zstd.unpack(body, length)
        if len(body) != length:
            raise ValueError(f"it has {len(body):,} bytes and announces {length:,}")
        return body
    except ValueError as error:
        raise RecordDamaged(f"the {kind} of {bound_to}", str(error)) from None


def may_hold(data: bytes, text: bytes) -> bool:
    """True if a record's payload can contain these bytes. False is only possible for one that is neither packed nor
    sealed."""
    return type(data) is not bytes or len(data) < _FIXED or data[1] != 0 or text in data


def key_id(data: bytes) -> str | None:
    """The id of the key that seals this record, read from its header alone; None if it is not sealed.

    Raises:
        RecordDamaged: the header is missing.
    """
    try:
        return _read_head(data)[3] or None
    except ValueError as error:
        raise RecordDamaged("a record", str(error)) from None


def kind_of(data: bytes) -> str:
    """The kind of a record, read from its header alone.

    Raises:
        RecordDamaged: the header is missing.
    """
    try:
        return _read_head(data)[2].decode(errors="replace")
    except ValueError as error:
        raise RecordDamaged("a record", str(error)) from None


def length_of(data: bytes) -> int:
    """The unpacked size of a record in bytes, read from its header alone.

    Raises:
        RecordDamaged: the header is missing.
    """
    try:
        return _read_head(data)[4]
    except ValueError as error:
        raise RecordDamaged("a record", str(error)) from None


@lru_cache(maxsize=32)
def _plain_heads(kind: str) -> list[bytes]:
    """The headers of payloads that are neither packed nor sealed, by length."""
    return [_head(0, kind, "") + length.to_bytes(_LENGTH) for length in range(WORTH_PACKING)]


@lru_cache(maxsize=256)
def _head(flags: int, kind: str, key_id: str) -> bytes:
    kind_bytes, key_bytes = kind.encode(), key_id.encode()
    if not kind_bytes or len(kind_bytes) > 255:
        raise InvalidInput(f"the kind of a record has 1 to 255 bytes, not {len(kind_bytes)}")
    return bytes((_FORMAT, flags, len(kind_bytes), len(key_bytes))) + kind_bytes + key_bytes


def _read_head(data: bytes) -> tuple[int, int, bytes, str, int]:
    """The header's length, then flags, kind, key id and the payload's length."""
    if not data:
        raise ValueError("it is empty")
    if data[0] > _FORMAT:
        raise ValueError(f"written by a newer perdure (format {data[0]})")
    if len(data) < _FIXED or data[0] != _FORMAT:
        raise ValueError("it has no header")
    _, flags, kind_length, key_length = data[:_FIXED]
    kind_end = _FIXED + kind_length
    key_end = kind_end + key_length
    end = key_end + _LENGTH
    if len(data) < end + _CHECKSUM:
        raise ValueError("it is cut off")
    key_name = data[kind_end:key_end].decode("ascii", "replace")
    return end, flags, data[_FIXED:kind_end], key_name, int.from_bytes(data[key_end:end])


def _open(ring: KeyRing, key_name: str, body: bytes, head: bytes, bound_to: str) -> bytes:
    key = ring.get(key_name)
    try:
        return crypto.decrypt(key, body, head + bound_to.encode())
    except RecordDamaged as damaged:
        raise ValueError(damaged.problem) from None
