"""Run a transaction block again from its beginning when its transaction is gone.

The steps and statements of a block belong to its transaction: if that was rolled back, they never happened. Their
entries carry the unit and the block. When a block is found to be lost, that is put on record, and an attempt after it
does not read what was recorded in the block before. Effects and answers of people are not part of a transaction: they
stay, and are not repeated.

Before a COMMIT goes out, the journal notes by what its outcome can be asked for, should all that held the session die.

Which entries belong to which block is in block_entries.py, how a block is found to be lost in
perdure/_runtime/sessions/transaction_blocks.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from perdure._durable.attempt import Attempt, current
from perdure._durable.journal import BLOCK, LOST, UNIT, Block, block_of
from perdure._ground import codec
from perdure._model import Entry

COMMITTING = "committing"
_LEFT, _ENTERED = "left", "entered"


def belongs_to(block: Block, *, left: str = "", entered: bool = False) -> None:
    """The call whose body is running belongs to this block; `left`: it ended the block, and how."""
    scope = current.get()
    if scope is None or not scope.is_body:
        return
    note: dict[str, str | int | float | None] = {UNIT: block.unit, BLOCK: block.name}
    if left:
        note[_LEFT] = left
    if entered:
        note[_ENTERED] = 1
    scope.attempt.touched[scope.path] = note


class Commit(NamedTuple):
    """A COMMIT that was about to go out."""

    line: str  # of the task that sent it
    note: dict[str, Any]  # by what its database knows it


def note_commit(attempt: Attempt, block: Block, commit: Commit) -> None:
    """Put on record that a block is about to be committed; the caller waits for the disk before it is."""
    path = f"~{COMMITTING} {block.unit} {block.name} {attempt.fence.position}"
    about: dict[str, str | int | float | None] = {UNIT: block.unit, BLOCK: block.name}
    now = attempt.store.clock.now_ms()
    attempt.record(
        Entry("result", COMMITTING, path, b"", codec.encode(list(commit)), note=about, at=now, epoch=attempt.epoch)
    )


class BlocksOnRecord:
    """What the journal knows of blocks, as this attempt found it."""

    def __init__(self, attempt: Attempt) -> None:
        self._used: dict[Block, bool] = {}
        self._left: set[Block] = set()
        self._commits: dict[Block, Commit] = {}
        for _, entry in attempt.entries:
            block = block_of(entry)
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


async def run_again(attempt: Attempt, block: Block) -> NoReturn:
    """Begin the attempt anew, without what was recorded in the block."""
    data = codec.encode([block.unit, block.name])
    now = attempt.store.clock.now_ms()
    path = f"~{LOST} {block.unit} {block.name} {attempt.fence.position}"
    attempt.record(Entry("result", LOST, path, b"", data, at=now, epoch=attempt.epoch), urgent=True)
    await attempt.flush()
    await attempt.begin_anew(f"~{LOST} {block.unit}")
