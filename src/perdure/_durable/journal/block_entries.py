"""Which entries of a journal belong to which transaction block, and the journal without the blocks that were lost.

Pure. Noting blocks and running one again is in lost_blocks.py.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from perdure._ground.encoding import codec
from perdure._model import Entry
from perdure._replay import LOOSE

LOST = "lost"
UNIT, BLOCK = "unit", "block"


class Block(NamedTuple):
    unit: str
    name: str


def block_of(entry: Entry) -> Block | None:
    note = entry.note
    if note is None or BLOCK not in note:
        return None
    return Block(str(note[UNIT]), str(note[BLOCK]))


def without_lost(entries: list[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    """The entries without those of blocks that run again; their cost was spent all the same."""
    gone: dict[Block, int] = {}
    for position, entry in entries:
        if entry.op == LOST and entry.value is not None:
            gone[Block(*codec.decode(entry.value, list[str]))] = position
    if not gone:
        return entries
    forgotten = {
        entry.path: position
        for position, entry in entries
        if (block := block_of(entry)) is not None and position < gone.get(block, 0)
    }
    begun: dict[Block, int] = {}
    for position, entry in entries:
        if (block := block_of(entry)) is not None and position < gone.get(block, 0):
            begun.setdefault(block, position)
    spans = [(first, gone[block]) for block, first in begun.items()]
    found: list[tuple[int, Entry]] = []
    for position, entry in entries:
        block = block_of(entry)
        if entry.kind == "intent" and entry.op == "try" and position < forgotten.get(entry.path, 0):
            continue  # a step of the block that was tried more than once
        if block is not None and position < gone.get(block, 0):
            if "spent_tokens" in (entry.note or {}):
                found.append((position, Entry("result", "spent", f"|{LOST}|{position}", b"", note=entry.note)))
            continue
        is_loose = entry.kind == "result" and any(first < position < last for first, last in spans)
        found.append((position, replace(entry, note={**(entry.note or {}), LOOSE: 1}) if is_loose else entry))
    return found
