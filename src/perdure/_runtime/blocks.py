"""What a transaction block means in a durable function, for every kind of kept session.

A block outlives the attempt: the next attempt, replaying, walks into it again and goes on in the same transaction.
For that each block is numbered, in the order the code comes to them, and recorded:

    entered   in the journal, before anything in it; a block that the journal does not know is undone and begun anew
    left      in the journal, after its COMMIT; in between, the session's own process knows how it ended

A block that has ended is walked through without a transaction, and one whose transaction is lost too: the statements
in it are recorded steps, and whoever tries a new one is told.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from perdure._durable import Run, step
from perdure.errors import TransactionLost

COMMITTED = "it was committed by an earlier attempt"


class InBlocks(Protocol):
    """A way into a session that has blocks."""

    over: str  # why the block that is walked through has no transaction

    @property
    def label(self) -> str:
        """The session, in errors and in the journal."""
        ...

    async def known(self) -> dict[str, Any]:
        """What the session's process knows of blocks: line, last, open, ended; and `lost`, why there are none."""
        ...

    async def enter_block(self, line: str, number: int) -> None: ...

    async def commit_block(self, number: int) -> None: ...

    async def undo_block(self, number: int) -> None: ...

    def cut_off(self) -> None:
        """Neither commit nor roll back: the next attempt goes on here."""
        ...


def line_of(run: Run) -> str:
    return f"{run.uid}/{run.line}"


@asynccontextmanager
async def kept_block(run: Run, way: InBlocks, is_undone: Callable[[BaseException], bool]) -> AsyncIterator[None]:
    """One block; `is_undone` says of an exception that it only asks for the block to be undone."""
    number = _next_number(run, way.label)
    is_new: list[bool] = []

    async def begin() -> None:
        is_new.append(True)
        known = await way.known()
        if number in known["open"] and known["line"] == line_of(run):
            await way.undo_block(number)  # an attempt before us died in it before it had recorded that
        await way.enter_block(line_of(run), number)

    await _enter(way.label, number, begin)
    over = "" if is_new else _why_over(await way.known(), line_of(run), number)
    before, way.over = way.over, over or way.over
    try:
        yield
    except BaseException as error:
        way.over = before
        if run.is_ending:
            way.cut_off()
            raise
        if not over:
            await way.undo_block(number)
        await _leave(way.label, number, "")
        if is_undone(error):
            return
        raise
    way.over = before
    if not over:
        await run.flush()  # what was recorded in it is on disk before the COMMIT goes out
        await way.commit_block(number)
    await _leave(way.label, number, "" if over == COMMITTED else over)


def _why_over(known: dict[str, Any], line: str, number: int) -> str:
    """Empty when the recorded block is open in this session; else how it ended."""
    if known["line"] != line or number > known["last"]:
        return f"its session is lost: {known['lost']}"
    if number in known["open"]:
        return ""
    ended = known["ended"]
    if ended.get("number") != number or ended["how"] == "COMMIT":
        return COMMITTED  # one before the last, or one inside: the code has gone on from it
    return str(ended["how"])


_numbers: weakref.WeakKeyDictionary[Run, dict[str, int]] = weakref.WeakKeyDictionary()


def _next_number(run: Run, label: str) -> int:
    """The how-manieth block of this attempt it is, in this session."""
    numbers = _numbers.setdefault(run, {})
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
async def _leave(label: str, number: int, lost: str) -> int:
    """Recorded when a block has ended; what an earlier attempt has recorded counts, whatever is true now."""
    if lost:
        raise TransactionLost(label, lost)
    return number
