"""Statements of a durable function on a kept session: each happens once per call.

A statement in a step's body goes to the session with the path of its call; the session's ledger answers it if the
step was cut off and is run again. A statement in the function itself is a recorded call as well: its answer is in the
task's journal, and a replay takes it from there.

Owns the identity of a statement, and the refusal of statements that cannot be made to happen once.
"""

from __future__ import annotations

import re
from typing import Literal

from perdure._durable import Block, UnitCall, belongs_to, is_in_effect
from perdure.errors import InvalidInput
from perdure.keeper import StatementCall

Control = Literal["begin", "commit", "rollback", ""]
LONGEST_ANSWER = 1 << 20

_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_BEGIN = re.compile(r"(?:BEGIN|START\s+TRANSACTION)\b", re.IGNORECASE)
_COMMIT = re.compile(r"(?:COMMIT|END)\b", re.IGNORECASE)
_ROLLBACK = re.compile(r"(?:ROLLBACK|ABORT)\b(?!\s+(?:WORK\s+|TRANSACTION\s+)?TO\b)", re.IGNORECASE)


def control_of(text: str) -> Control:
    """The effect of a statement on the transaction: it begins it, ends it, or neither."""
    start = _COMMENTS.match(text)
    at = start.end() if start else 0
    if _BEGIN.match(text, at):
        return "begin"
    if _COMMIT.match(text, at):
        return "commit"
    return "rollback" if _ROLLBACK.match(text, at) else ""


def call_in_step(place: UnitCall, unit: str, digest: str, text: str, block: str, path: str) -> StatementCall:
    """The call of a statement in a body that is running."""
    if block:
        if is_in_effect():
            raise InvalidInput(
                f"a statement in the open transaction of {unit!r} stands inside an effect",
                kept="the statement did not run; the transaction is open",
                do="put it beside the effect: a transaction can still be rolled back, and an effect cannot",
            )
        belongs_to(Block(unit, block))
    return StatementCall(place.line, path, digest, block, text)


async def wait_for_journal(place: UnitCall, block: str) -> None:
    """Before a statement leaves the process: wait until the journal has what the statement may depend on. Otherwise a
    step that was not on record would run again, give another result, and ask for another statement. What belongs to the
    open transaction need not be waited for: if it is lost, its session gives it again."""
    attempt = place.attempt
    await (attempt.pipeline.flush_outside() if block else attempt.flush())


def refuse(unit: str, what: str, do: str) -> InvalidInput:
    return InvalidInput(
        f"{what} on the kept session {unit!r} cannot be done once per call in a durable function",
        kept="nothing was sent to the database",
        do=do,
    )


IN_A_STEP = "begin and end transactions in the durable function itself; the statements of a step belong to them"
