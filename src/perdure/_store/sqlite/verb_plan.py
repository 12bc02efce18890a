"""The plan of a verb: its statements, the condition of each one, and the source of its answer.

The first statement carries the verb's condition. If it says RETURNING, or only looks, its row is the answer. RETURNING
costs half as much again as the statement itself, so the verbs that run most often do without: whether they changed a
row is asked of SQLite, and the answer is one of their own parameters.

A statement behind a line `--? name` is run only when that parameter is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_WHEN = "--? "
# The answers of the verbs without RETURNING.
_ANSWERS = {
    "append_entry": "position",
    "claim_free": "uid",
    "complete_function": "uid",
    "create_task": "uid",
    "fork_function": "uid",
    "start_function": "uid",
    "start_hidden": "uid",
}


class Plan(NamedTuple):
    first: str
    answer: str  # the parameter that is the answer; '' when the first statement returns it
    begins: bool  # it makes a task, whose chain of events begins with `:head`
    others: tuple[tuple[str, str], ...]  # (the parameter it needs or '', the statement)


def plan_of(verb: str, statements: Sequence[str]) -> Plan:
    first, *others = statements
    returns = "RETURNING" in first or first.startswith("SELECT")
    return Plan(
        first, "" if returns else _ANSWERS[verb], any(":head" in s for s in statements), tuple(map(_split, others))
    )


def _split(statement: str) -> tuple[str, str]:
    if not statement.startswith(_WHEN):
        return "", statement
    head, _, rest = statement.partition("\n")
    return head.removeprefix(_WHEN).strip(), rest
