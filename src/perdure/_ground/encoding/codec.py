"""Python values to bytes and back, such that a value is read as it was written.

A value is written as plain msgpack, read again at once and compared. If it is equal, that is all: no walk in Python. If
not, it is written in the tagged form (tagged_form.py) behind a byte that msgpack never uses, and checked again. A value
that still differs is refused, with the path to the difference.

With an annotation, the plain form is read by it: a dataclass, Struct, pydantic model, TypedDict, set,
Decimal or Path comes back as itself. A value that does not fit its annotation is tagged, and comes back as it
was. Without one, these come back simpler, yet equal or nearly so:

    an aware datetime            the same moment, in UTC
    a subclass of str, dict, …   the plain str, dict, …; a NamedTuple is a tuple, a bytearray is bytes
    an Enum                      its value (a registered one: itself, or, if it is a str or int, an equal one)
    a class without a codec      a dict of its fields

Nothing here runs code found in the bytes: no pickle, no imports, no names other than known ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from perdure._ground.encoding import class_fields as shapes
from perdure._ground.encoding import tagged_form as tags
from perdure._ground.encoding.class_fields import known_to, register
from perdure._ground.signal_handlers import was_raised_by_a_handler
from perdure.errors import InvalidInput, NotStorable, PerdureError, RecordDamaged

__all__ = ["decode", "encode", "peek", "register", "round_trip"]

# The one byte that begins no msgpack value.
TAGGED = b"\xc1"

# msgpack either returns these unchanged or refuses them, so they need not be read again; and because they are
# immutable, each is its own copy. (Not so a float: a nan is not even equal to itself.)
_ATOMS = (str, int, bool, bytes, type(None))

_plain_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder()


def encode(value: object, as_type: object = Any) -> bytes:
    """The value as bytes from which `decode` with the same annotation makes it again.

    Raises:
        NotStorable: some of it would not come back as it was; the path leads there.
    """
    return round_trip(value, as_type)[0]


def encode_own(value: object) -> bytes:
    """The same for what perdure has made itself, of texts, numbers, bytes, lists and dicts: it comes back as it was."""
    return _encode(value)


def round_trip(value: object, as_type: object = Any) -> tuple[bytes, Any]:
    """The bytes and the value read back from them: what a caller gets now and after a crash are then the same.

    Raises:
        NotStorable: some of it would not come back as it was; the path leads there.
    """
    try:
        encode = _encode if as_type is Any else _encode_typed
        data = encode(value)
        back = decoder_for(as_type).decode(data)
        if back == value:
            return data, back
    except Exception as error:  # whatever msgspec, a validator or an __eq__ disliked: the tagged form decides
        if was_raised_by_a_handler(error):
            raise
    return _round_trip_tagged(value, as_type)


def keeper_of(as_type: object) -> Callable[[Any], tuple[bytes, Any] | None]:
    """`round_trip` for one annotation and for most values; None for one that takes another form, or none at all."""
    encode, decode = (_encode if as_type is Any else _encode_typed), decoder_for(as_type).decode

    def keep(value: object) -> tuple[bytes, Any] | None:
        try:
            data = encode(value)
            back = decode(data)
            return (data, back) if back == value else None
        except Exception as error:  # as in round_trip, which is asked then
            if was_raised_by_a_handler(error):
                raise
            return None

    def keep_atom(value: object) -> tuple[bytes, Any] | None:
        if type(value) is not as_type:
            return keep(value)
        try:
            return encode(value), value
        except Exception:  # a number or a text that msgpack does not take
            return None

    return keep_atom if as_type in _ATOMS else keep


def decode(data: bytes, as_type: object = Any) -> Any:
    """The value that was encoded.

    Raises:
        RecordDamaged: the bytes are not what `encode` makes.
        InvalidInput: they are whole, but the value does not fit the annotation, or its class is not registered.
    """
    try:
        if data[:1] == TAGGED:
            return tags.read(memoryview(data)[1:], _known_to(as_type))
        return decoder_for(as_type).decode(data)
    except PerdureError:
        raise
    except RecursionError:
        raise RecordDamaged("an encoded value", "it is nested too deeply to be read") from None
    except Exception as error:
        if was_raised_by_a_handler(error):
            raise
        raise _why_unreadable(data, as_type, error) from error


def is_plain(data: bytes) -> bool:
    """True if the value was stored in plain form: with an annotation, that it fits it."""
    return data[:1] != TAGGED


def peek(data: bytes) -> Any:
    """The content for people to look at: instances of unknown classes are dicts of their fields.

    Raises:
        RecordDamaged: the bytes are not what `encode` makes.
    """
    if data[:1] != TAGGED:
        return decode(data)
    try:
        return tags.show(memoryview(data)[1:], _known_to(Any))
    except Exception as error:
        raise RecordDamaged("an encoded value", str(error)) from error


# ── the tagged form ───────────────────────────────────────────────────────────────────────────────


def _round_trip_tagged(value: object, as_type: object) -> tuple[bytes, Any]:
    known = _known_to(as_type)
    data = tags.write(value, known)
    try:
        back = tags.read(data, known)
        # Compared as bytes, because a NaN or a class without __eq__ differs even from itself read back.
        is_same = _is_equal(back, value) or tags.write(back, known) == data
    except Exception as error:
        raise NotStorable("", f"it cannot be read back: {_first_line(error)}", do=_DO_CHECK) from error
    if not is_same:
        raise NotStorable("", "it does not come back as it was", do=_DO_CHECK)
    return TAGGED + data, back


_DO_CHECK = "see that its classes keep the fields they are given, in __init__, __post_init__ and validators"


def _is_equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except Exception:
        return False


# ── reading by annotation ─────────────────────────────────────────────────────────────────────────


def decoder_for(as_type: object) -> msgspec.msgpack.Decoder[Any]:
    if as_type is Any:
        return _plain_decoder
    try:
        return _typed_decoder(as_type)
    except TypeError:  # an annotation that cannot be hashed
        return _typed_decoder.__wrapped__(as_type)


@lru_cache(maxsize=512)
def _typed_decoder(as_type: object) -> msgspec.msgpack.Decoder[Any]:
    try:
        return msgspec.msgpack.Decoder(as_type, dec_hook=_read_model)
    except Exception:  # msgspec does not take every annotation (a union of two dataclasses); the tagged form does
        return _plain_decoder


def _known_to(as_type: object) -> shapes.Known:
    try:
        return known_to(as_type)
    except TypeError:
        return known_to.__wrapped__(as_type)


def _write_model(value: object) -> Any:
    if shapes.is_pydantic(type(value)) and shapes.is_wholly_set(value):
        return shapes.fields_of(value)
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError


def _read_model(cls: type[Any], content: Any) -> Any:
    if shapes.is_pydantic(cls):
        return cls.model_validate(content)
    if issubclass(cls, Path):
        return cls(content)
    raise NotImplementedError


_encode = msgspec.msgpack.Encoder().encode
_encode_typed = msgspec.msgpack.Encoder(enc_hook=_write_model).encode


# ── saying what is wrong ──────────────────────────────────────────────────────────────────────────


def _why_unreadable(data: bytes, as_type: object, error: Exception) -> PerdureError:
    if as_type is Any or data[:1] == TAGGED or not _is_readable(data):
        return RecordDamaged("an encoded value", _first_line(error))
    return InvalidInput(
        f"the stored value does not fit {as_type}: {_first_line(error)}",
        kept="the record, unread and unchanged",
        do="widen the annotation so that it takes old values too, or publish the change as a new version",
    )


def _is_readable(data: bytes) -> bool:
    try:
        _plain_decoder.decode(data)
    except Exception:
        return False
    return True


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def stored_json(text: str, record: str, kind: type = object) -> Any:
    """The JSON content of a store's column, such as a list or a dict.

    Raises:
        RecordDamaged: it is not JSON, or of another kind.
    """
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise RecordDamaged(record, f"it is not JSON: {error}") from None
    if not isinstance(found, kind):
        raise RecordDamaged(record, f"it is {type(found).__name__}, not {kind.__name__}")
    return found
