"""Transaction blocks of a durable function, for every kind of kept session.

A block outlives the attempt: the next attempt replays, enters the block again and continues in the same transaction.
For that each block is numbered, in the order in which the code enters them, and recorded:

    entered   in the journal, before anything in it; a block that the journal does not know is undone and begun anew
    commits   in the journal, before its COMMIT goes out: by what the database knows that COMMIT
    left      in the journal, after its COMMIT; in between, the session's own process knows how it ended

A block that has ended is walked through without a transaction: what it did is on record. One whose transaction is gone
is run again from its beginning (perdure/_durable/databases/lost_blocks.py): what was recorded in it belonged to that
transaction.
When the session and all that it had noted are gone too, the journal decides. Without a COMMIT in it none was sent, and
the transaction was rolled back. With one, the database is asked; if it cannot tell, the block is uncertain, and is
neither passed by nor run again.

A transaction without a block, from a statement to `commit()`, is treated alike. It has no number; it is named by the
path of the call that began it.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from perdure._durable import Attempt, Block, BlocksOnRecord, Commit, belongs_to, note_commit, run_again, step
from perdure._ground import crash_points as crash
from perdure.errors import TransactionLost
from perdure.keeper import commit_outcome


class Outcome(StrEnum):
    """The outcome of a transaction."""

    COMMITTED = commit_outcome.COMMITTED
    ROLLED_BACK = commit_outcome.ROLLED_BACK
    UNCERTAIN = commit_outcome.UNCERTAIN


class Over(NamedTuple):
    """Why a block that is walked through has no transaction."""

    outcome: Outcome
    why: str

    def error(self, label: str) -> TransactionLost:
        """For an attempt that would continue in it."""
        return TransactionLost(label, self.why, self.outcome == Outcome.UNCERTAIN)


COMMITTED = Over(Outcome.COMMITTED, "it was committed by an earlier attempt")


class InBlocks(Protocol):
    """A way into a session that has blocks."""

    over: Over | None  # of the block that is walked through
    block: (
        str  # the transaction of the moment: a number, or the path of the call that began it; "" outside a transaction
    )
    depth: int  # how many blocks are open around the code

    @property
    def is_once(self) -> bool:
        """False: the task was begun when statements had no calls."""
        ...

    @property
    def label(self) -> str:
        """The session, in errors and in the journal."""
        ...

    async def known(self) -> dict[str, Any]:
        """The blocks known to the session's process: line, last, open, ended; and `lost`, why it knows none."""
        ...

    async def enter_block(self, line: str, number: int) -> None: ...

    async def commit_note(self) -> dict[str, Any]:
        """The database's identity of the open transaction, to look its COMMIT up; empty when there is none."""
        ...

    async def outcome_of(self, note: dict[str, Any], *, is_over: bool) -> tuple[str, str]:
        """The outcome of the COMMIT with this note, or the reason that it is unknown. `is_over`: no other task works on
        it."""
        ...

    async def commit_block(self, number: int) -> None: ...

    async def undo_block(self, number: int) -> None: ...

    async def roll_back(self) -> None:
        """Roll back the open transaction, whichever client began it."""
        ...

    def cut_off(self) -> None:
        """Neither commit nor roll back: the next attempt continues here."""
        ...


def line_of(attempt: Attempt) -> str:
    return f"{attempt.uid}/{attempt.line}"


@asynccontextmanager
async def kept_block(
    attempt: Attempt, way: InBlocks, is_undone: Callable[[BaseException], bool]
) -> AsyncIterator[None]:
    """One block; `is_undone` says of an exception that it only asks for the block to be undone."""
    number = _next_number(attempt, way.label)
    is_new: list[bool] = []
    was_in, way.block = way.block, way.block or str(number)
    block = Block(way.label, way.block)

    async def begin() -> None:
        is_new.append(True)
        belongs_to(block, entered=not was_in)
        known = await way.known()
        if number in known["open"] and known["line"] == line_of(attempt):
            await way.undo_block(number)  # an attempt before us died in it before it had recorded that
        await way.enter_block(line_of(attempt), number)

    await _enter(way.label, number, begin)
    over = None if is_new else await _still_there(attempt, way, number, block)
    before, way.over, way.depth = way.over, over or way.over, way.depth + 1
    left = Block("", "") if was_in else block  # the end of a block inside another one ends no transaction
    try:
        yield
    except BaseException as error:
        if attempt.is_ending:
            way.cut_off()
            raise
        way.over = before
        if over is None:
            await attempt.flush()  # a step that was recorded in it is not looked for in the session any more
            await way.undo_block(number)
        way.block = was_in
        await _leave(way.label, number, None, left)
        if is_undone(error):
            return
        raise
    else:
        way.over = before
        if over is None:
            if not was_in:
                note_commit(attempt, block, Commit(line_of(attempt), await way.commit_note()))
            await attempt.flush()  # its journal entries are on disk before the COMMIT is sent
            crash.place("session.commits")
            await way.commit_block(number)
            crash.place("session.committed")
        way.block = was_in
        await _leave(way.label, number, over, left)
    finally:
        way.depth -= 1


async def _still_there(attempt: Attempt, way: InBlocks, number: int, block: Block) -> Over | None:
    """None when a recorded block is open in its session; else why it is walked through. Does not return when it is
    run again."""
    on_record = attempt.part(BlocksOnRecord)
    if on_record.is_left(block):
        return COMMITTED
    over = await _how_over(attempt, way, await way.known(), number, block)
    if over is None or over.outcome != Outcome.ROLLED_BACK or not way.is_once or block.name != str(number):
        return over
    if on_record.is_used(block):
        await run_again(attempt, block)
    await way.enter_block(line_of(attempt), number)  # nothing was recorded in it: it begins here
    return None


async def check_unfinished(attempt: Attempt, way: InBlocks) -> None:
    """A client has come to a session: find the transaction that the journal left open. Does not return when that is
    gone: then it is run again."""
    known, line = await way.known(), line_of(attempt)
    if known["open"] and known["line"] == line:
        way.block = str(known["open"][0])
    elif known["open"] and known["line"].startswith(f"{attempt.uid}/"):
        await way.roll_back()  # of a line of the journal that the task has left
    block = attempt.part(BlocksOnRecord).unfinished(way.label)
    if block is None or block.name == way.block:
        return
    over = await _how_over(attempt, way, known, int(block.name) if block.name.isdecimal() else block.name, block)
    if over is not None and over.outcome == Outcome.ROLLED_BACK:
        await run_again(attempt, block)
    if over is not None and not block.name.isdecimal():
        way.block, way.over = block.name, over  # until its commit() is on record


async def end_transaction(attempt: Attempt, way: InBlocks, how: str, act: Callable[[], Awaitable[None]]) -> None:
    """COMMIT or ROLLBACK of a transaction without a block, once."""

    async def end() -> None:
        block, over = Block(way.label, way.block), way.over
        if over is not None and over.outcome != Outcome.COMMITTED:
            raise over.error(way.label)
        if over is None:
            if how == "COMMIT" and block.name:
                note_commit(attempt, block, Commit(line_of(attempt), await way.commit_note()))
            await attempt.flush()
            crash.place("session.commits")
            await act()
            crash.place("session.committed")
        way.block, way.over = "", None
        if block.name:
            belongs_to(block, left=how)

    await _end(way.label, how, end)


async def _how_over(
    attempt: Attempt, way: InBlocks, known: dict[str, Any], number: int | str, block: Block
) -> Over | None:
    """None when the recorded block is open in this session; else how it ended, asked of the database if need be."""
    over, is_told = _told_over(known, line_of(attempt), number)
    commit = attempt.part(BlocksOnRecord).commit_of(block)
    if over is None or is_told or commit is None:
        return over
    asked = _asked.setdefault(attempt, {})
    if block not in asked:
        asked[block] = await _ask(attempt, way, commit)
    return asked[block]


async def _ask(attempt: Attempt, way: InBlocks, commit: Commit) -> Over:
    outcome, why = await way.outcome_of(commit.note, is_over=commit.line == line_of(attempt))
    if outcome == Outcome.COMMITTED:
        return COMMITTED
    if outcome == Outcome.ROLLED_BACK:
        return Over(Outcome.ROLLED_BACK, "its COMMIT was not done")
    return Over(Outcome.UNCERTAIN, f"whether it was committed is uncertain: {why}")


def _told_over(known: dict[str, Any], line: str, number: int | str) -> tuple[Over | None, bool]:
    """None when the recorded block is open in this session; else how it ended. False: the session does not know, and
    what is said holds if no COMMIT was sent."""
    lost = Over(Outcome.ROLLED_BACK, f"its session is lost: {known['lost']}")
    if known["line"] != line or (isinstance(number, int) and number > known["last"]):
        return lost, False
    if number in known["open"]:
        return None, True
    ended = known["ended"]
    if ended.get("number") != number:
        # A number before the last, or one inside: the code has gone on from it.
        return (lost, False) if isinstance(number, str) else (COMMITTED, True)
    outcome = _outcome_of(ended)
    if outcome == Outcome.COMMITTED:
        return COMMITTED, True
    return Over(outcome, ended["how"]), outcome == Outcome.ROLLED_BACK


def _outcome_of(ended: dict[str, Any]) -> Outcome:
    """A process that was started by an earlier version says only how."""
    if "outcome" in ended:
        return Outcome(ended["outcome"])
    return {"COMMIT": Outcome.COMMITTED, "ROLLBACK": Outcome.ROLLED_BACK}.get(ended["how"], Outcome.UNCERTAIN)


_asked: weakref.WeakKeyDictionary[Attempt, dict[Block, Over]] = weakref.WeakKeyDictionary()
_numbers: weakref.WeakKeyDictionary[Attempt, dict[str, int]] = weakref.WeakKeyDictionary()


def _next_number(attempt: Attempt, label: str) -> int:
    """Index of this block within the attempt, per session."""
    numbers = _numbers.setdefault(attempt, {})
    numbers[label] = numbers.get(label, 0) + 1
    return numbers[label]


def _identity(label: str, number: int, *_: Any) -> tuple[str, int]:
    return label, number


@step(name="session.enter", flush=True, identity=_identity)
async def _enter(label: str, number: int, begin: Callable[[], Awaitable[None]]) -> int:
    """Recorded when a block has begun; its body runs only when the journal does not know the block."""
    await begin()
    return number


@step(name="session.leave", flush=True, identity=_identity, raises=[TransactionLost])
async def _leave(label: str, number: int, over: Over | None, block: Block) -> int:
    """Record that a block has ended. The record of an earlier attempt wins over the present state."""
    if over is not None and over.outcome != Outcome.COMMITTED:
        raise over.error(label)
    if block.name:
        belongs_to(block, left="left")
    return number


@step(name="session.end", flush=True, identity=lambda label, how, _: (label, how))
async def _end(label: str, how: str, end: Callable[[], Awaitable[None]]) -> None:
    """Recorded when a transaction without a block has ended."""
    await end()
