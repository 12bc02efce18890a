"""Recognize statements that can end a transaction. Pure, and on the safe side.

A false alarm costs one question more; a missed one means that the outcome of a COMMIT cannot be asked for later. So the
words count anywhere, also in a comment or in a text.
"""

from __future__ import annotations

import re

NONE, ROLLBACK, COMMIT, MIXED = "", "rollback", "commit", "mixed"

_WORDS = re.compile(
    rb"\bCOMMIT\b|\bABORT\b|\bROLLBACK\b(?!\s+(?:(?:WORK|TRANSACTION)\s+)?TO\b)"
    rb"|\bPREPARE\s*(?:TRANSACTION\b|/\*|--)|(?:^|[;\r\n]|\*/)[ \t\f\v]*END\b",
    re.IGNORECASE,
)
_BEFORE = rb"(?:\s|/\*(?:(?!\*/)[\s\S])*\*/|--[^\r\n]*[\r\n])*"
_TAIL = rb"(?:\s+(?:WORK|TRANSACTION))?(?:\s+AND\s+NO\s+CHAIN)?\s*;?\s*\0?"
_COMMIT = re.compile(_BEFORE + rb"(?:COMMIT|END)" + _TAIL, re.IGNORECASE)
_PREPARE = re.compile(_BEFORE + rb"PREPARE\s+TRANSACTION\s+'[^']*'\s*;?\s*\0?", re.IGNORECASE)
_ROLLBACK = re.compile(_BEFORE + rb"(?:ROLLBACK|ABORT)" + _TAIL, re.IGNORECASE)


def ending_of(sql: bytes) -> str:
    """The possible effect of a statement, or of several, on the transaction: one of the words above."""
    if _WORDS.search(sql) is None:
        return NONE
    if _COMMIT.fullmatch(sql) or _PREPARE.fullmatch(sql):
        return COMMIT
    return ROLLBACK if _ROLLBACK.fullmatch(sql) else MIXED


def together(one: str, other: str) -> str:
    """Of two statements that were sent together."""
    return one if not other else other if not one else MIXED
