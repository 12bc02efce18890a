"""Run a transaction block again from its beginning when its transaction was lost.

The steps and statements of a block belong to its transaction: if that was rolled back, they never happened. Their
entries carry the unit and the block. When a block is found to be lost, the journal notes it, and later attempts ignore
what was recorded in the block. Effects and people's answers are not part of a transaction: they stay, and are not
repeated.

Before a COMMIT is sent, the journal notes how to ask the database for its outcome, in case everything that held the
session dies.

perdure/_durable/journal/block_entries.py tells which entries belong to which block, and
perdure/_runtime/sessions/transaction_blocks.py how a block is found to be lost.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from perdure._durable.attempt import Attempt, current
from perdure._durable.journal import BLOCK, LOST, UNIT, Block, block_of
from perdure._ground.encoding import codec
from perdure._model import Entry

COMMITTING = "committing"
_LEFT, _ENTERED = "left", "entered"


def belongs_to(block: Block, *, left: str = "", entered: bool = False) -> None:
    """Note that the running call belongs to this block. `left` says how the call ended the block, if it did."""
    scope = current.get()
    if scope is None or not scope.is_body:
        return
    note: dict[str, str | int | float | None] = {UNIT: block.unit, BLOCK: block.name}
    if left:
        note[_LEFT] = left
    if entered:
        note[_ENTERED] = 1
    scope.attempt.activity.touched[scope.path] = note


class Commit(NamedTuple):
    """A COMMIT that was about to be sent."""

    line: str  # the task's line that sent it
    note: dict[str, Any]  # what identifies it to its database


def note_commit(attempt: Attempt, block: Block, commit: Commit) -> None:
    """Record that a block is about to be committed. The caller waits for the disk before it commits."""
    path = f"~{COMMITTING} {block.unit} {block.name} {attempt.fence.position}"
    about: dict[str, str | int | float | None] = {UNIT: block.unit, BLOCK: block.name}
    now = attempt.store.clock.now_ms()
    attempt.record(
        Entry("result", COMMITTING, path, b"", codec.encode(list(commit)), note=about, at=now, epoch=attempt.epoch)
    )


class BlocksOnRecord:
    """What the journal says about blocks, as this attempt found it."""

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
        """The block's COMMIT, if it may have been sent."""
        return self._commits.get(block)

    def is_used(self, block: Block) -> bool:
        """True if anything was recorded in it."""
        return block in self._used

    def unfinished(self, unit: str) -> Block | None:
        """The block of this unit that has recorded calls and has not ended."""
        found = [block for block in self._used if block.unit == unit and block not in self._left]
        return found[-1] if found else None


async def run_again(attempt: Attempt, block: Block) -> NoReturn:
    """Restart the attempt without what was recorded in the block."""
    data = codec.encode([block.unit, block.name])
    now = attempt.store.clock.now_ms()
    path = f"~{LOST} {block.unit} {block.name} {attempt.fence.position}"
    attempt.record(Entry("result", LOST, path, b"", data, at=now, epoch=attempt.epoch), urgent=True)
    await attempt.flush()
    await attempt.unwinding.begin_anew(f"~{LOST} {block.unit}")
