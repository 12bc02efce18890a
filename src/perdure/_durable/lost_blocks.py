"""Run a transaction block again from its beginning when its transaction is gone.

The steps and statements of a block belong to its transaction: if that was rolled back, they never happened. Their
entries carry the unit and the block. When a block is found to be lost, that is put on record, and an attempt after it
does not read what was recorded in the block before. Effects and answers of people are not part of a transaction: they
stay, and are not repeated.

Before a COMMIT goes out, the journal notes by what its outcome can be asked for, should all that held the session die.

Owns which entries belong to which block. How a block is found to be lost is in perdure/_runtime/blocks.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from msgspec.structs import replace

from perdure._durable.run import Run
from perdure._durable.scopes import current
from perdure._ground import codec
from perdure._model import Entry
from perdure._replay import LOOSE

LOST, COMMITTING = "lost", "committing"
_UNIT, _BLOCK, _LEFT, _ENTERED = "unit", "block", "left", "entered"


class Block(NamedTuple):
    unit: str
    name: str


def belongs_to(block: Block, *, left: str = "", entered: bool = False) -> None:
    """The call whose body is running belongs to this block; `left`: it ended the block, and how."""
    scope = current.get()
    if scope is None or not scope.is_body:
        return
    note: dict[str, str | int | float | None] = {_UNIT: block.unit, _BLOCK: block.name}
    if left:
        note[_LEFT] = left
    if entered:
        note[_ENTERED] = 1
    scope.run.touched[scope.path] = note


class Commit(NamedTuple):
    """A COMMIT that was about to go out."""

    line: str  # of the task that sent it
    note: dict[str, Any]  # by what its database knows it


def note_commit(run: Run, block: Block, commit: Commit) -> None:
    """Put on record that a block is about to be committed; the caller waits for the disk before it is."""
    path = f"~{COMMITTING} {block.unit} {block.name} {run.fence.position}"
    about: dict[str, str | int | float | None] = {_UNIT: block.unit, _BLOCK: block.name}
    now = run.store.clock.now_ms()
    run.record(Entry("result", COMMITTING, path, b"", codec.encode(list(commit)), note=about, at=now, epoch=run.epoch))


class BlocksOnRecord:
    """What the journal knows of blocks, as this attempt found it."""

    def __init__(self, run: Run) -> None:
        self._used: dict[Block, bool] = {}
        self._left: set[Block] = set()
        self._commits: dict[Block, Commit] = {}
        for _, entry in run.entries:
            block = _block_of(entry)
            if block is None:
                continue
            note = entry.note or {}
            if entry.op == COMMITTING:
                if entry.value is not None:
                    self._commits[block] = Commit(*codec.decode(entry.value, list[Any]))
            elif _LEFT in note and entry.error is None:
                self._left.add(block)
            elif _ENTERED not in note:
                self._used[block] = True

    def is_left(self, block: Block) -> bool:
        return block in self._left

    def commit_of(self, block: Block) -> Commit | None:
        """Its COMMIT, if that may have gone out."""
        return self._commits.get(block)

    def is_used(self, block: Block) -> bool:
        """Whether anything was recorded in it."""
        return block in self._used

    def unfinished(self, unit: str) -> Block | None:
        """The block of this unit in which something was recorded, and which has not ended."""
        found = [block for block in self._used if block.unit == unit and block not in self._left]
        return found[-1] if found else None


def _block_of(entry: Entry) -> Block | None:
    note = entry.note
    if note is None or _BLOCK not in note:
        return None
    return Block(str(note[_UNIT]), str(note[_BLOCK]))


async def run_again(run: Run, block: Block) -> NoReturn:
    """Begin the attempt anew, without what was recorded in the block."""
    data = codec.encode([block.unit, block.name])
    now = run.store.clock.now_ms()
    path = f"~{LOST} {block.unit} {block.name} {run.fence.position}"
    run.record(Entry("result", LOST, path, b"", data, at=now, epoch=run.epoch), urgent=True)
    await run.flush()
    await run.begin_anew(f"~{LOST} {block.unit}")


def without_lost(entries: list[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    """The entries without those of blocks that are run again; what they cost was spent all the same."""
    gone: dict[Block, int] = {}
    for position, entry in entries:
        if entry.op == LOST and entry.value is not None:
            gone[Block(*codec.decode(entry.value, list[str]))] = position
    if not gone:
        return entries
    forgotten = {
        entry.path: position
        for position, entry in entries
        if (block := _block_of(entry)) is not None and position < gone.get(block, 0)
    }
    begun: dict[Block, int] = {}
    for position, entry in entries:
        if (block := _block_of(entry)) is not None and position < gone.get(block, 0):
            begun.setdefault(block, position)
    spans = [(first, gone[block]) for block, first in begun.items()]
    found: list[tuple[int, Entry]] = []
    for position, entry in entries:
        block = _block_of(entry)
        if entry.kind == "intent" and entry.op == "try" and position < forgotten.get(entry.path, 0):
            continue  # a step of the block that was tried more than once
        if block is not None and position < gone.get(block, 0):
            if "spent_tokens" in (entry.note or {}):
                found.append((position, Entry("result", "spent", f"|{LOST}|{position}", b"", note=entry.note)))
            continue
        is_loose = entry.kind == "result" and any(first < position < last for first, last in spans)
        found.append((position, replace(entry, note={**(entry.note or {}), LOOSE: 1}) if is_loose else entry))
    return found
