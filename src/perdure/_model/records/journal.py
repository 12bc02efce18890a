"""The journal of a durable function: its entries, in order.

A path names a call permanently: the scope it was made in, its name, and its index among the calls of that name in that
scope. An entry's position is its place in the order in which results were handed to the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure.errors import RecordDamaged

Kind = Literal[
    "result",  # a call that ended, with its value or its error
    "intent",  # an effect is about to run
    "cut",  # a call that was ended by cancellation or by its time running out
]


class Entry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One record of a journal. `op` is what sort of call it was: step, effect, now, pause, child, …"""

    kind: Kind
    op: str
    path: str
    digest: bytes
    value: bytes | None = None
    error: bytes | None = None
    at: int = 0
    took_ms: int = 0
    epoch: int = 0
    note: dict[str, str | int | float | None] | None = None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)
encode_entry = _encoder.encode
decode_entry = _decoder.decode


def seal_entry(entry: Entry, uid: str, position: int, ring: KeyRing) -> bytes:
    """An entry as it is stored at this position of a task's journal.

    Raises:
        TooLarge: it exceeds the limit for a record.
    """
    return envelope.seal(encode_entry(entry), "entry", uid, ring, place=position)


def open_entry(sealed: bytes, uid: str, position: int, ring: KeyRing) -> Entry:
    """The entry that is stored at this position.

    Raises:
        RecordDamaged: it is not the entry that was written there.
        KeyMissing: its key is not in the ring.
    """
    payload = envelope.unseal(sealed, kind="entry", bound_to=uid, ring=ring, place=position)
    try:
        return decode_entry(payload)
    except msgspec.DecodeError as error:
        raise RecordDamaged(f"entry {position} of {uid}", str(error)) from None


# In the note of an entry that was copied from another line or task: the position of its predecessor.
AFTER = "after"
# The path of the entry with the cost of earlier lines: the last entry that a rollback copies.
CARRIED = "|carried|spent"


def missing_in(rows: Sequence[tuple[int, Entry | None]], last: int = 0) -> list[tuple[int, str]]:
    """The positions where an entry is missing, and how that is known. Pure.

    Attempts count positions up by one, without a gap. Copied entries keep the positions that they had, with gaps, and
    name the one before them; those that an older perdure copied do not. `None` is an entry that cannot be read. `last`
    is the least length that the line is known to have.
    """
    found: list[tuple[int, str]] = []
    before = 0
    if [position for position, _ in rows] == list(range(1, len(rows) + 1)):  # most are so
        before = len(rows)
    else:
        copied = max((position for position, entry in rows if entry is not None and entry.path == CARRIED), default=0)
        for position, entry in rows:
            if entry is None and position > last > 0:
                continue  # it belongs in another place, and is missed there
            gap = _gap(before, position, entry, position <= copied)
            if gap:
                found.append((gap, f"it is missing: entry {position} stands after {before or 'the beginning'}"))
            before = position
    if before < last:
        found.append((before + 1, f"it is missing: the journal has had {last} entries, and ends after {before}"))
    return found


def _gap(before: int, position: int, entry: Entry | None, was_copied: bool) -> int:
    """The first position that is missing between two entries, 0 if none is."""
    if entry is None:
        return 0  # it says so itself
    after = (entry.note or {}).get(AFTER)
    if isinstance(after, int):
        return 0 if after == before else after
    if position == before + 1 or position == before == 0 or was_copied or entry.epoch < 0:
        return 0
    return before + 1


# The name of the call by which a durable function starts another one's task; the result is that task's uid.
START = "start "


def starts_a_task(entry: Entry) -> bool:
    return entry.op == "child" and name_of(entry.path).startswith(START)


def path_of(scope: str, name: str, occurrence: int) -> str:
    return f"{scope}|{name}#{occurrence}"


def scope_of(path: str) -> str:
    return path.rpartition("|")[0]


def name_of(path: str) -> str:
    return path.rpartition("|")[2].rpartition("#")[0]
