"""Tasks: their relatives, whether their events are whole, and what they have cost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec import Struct

from perdure._durable import Savings, Spent, TaskAccount, account_of
from perdure._model import Family
from perdure._tasks import store_of, verify
from perdure.server.aside import aside
from perdure.server.http import Answer, Ask
from perdure.server.nouns.references import glance_at
from perdure.server.shapes.tasks import Strict
from perdure.server.table import Nothing, Route

_MOST_CALLS = 1000


class FamilyQuery(Strict, frozen=True, kw_only=True):
    limit: int = 500


class ChainReport(Struct, frozen=True):
    """Whether the events of a task are as they were written; `broken_at` is the first that does not fit."""

    is_whole: bool
    events: int
    head: str
    broken_at: int | None
    problem: str
    unseen: list[str]


class CostOf(Struct, frozen=True):
    """The cost of one function's calls to one model."""

    function: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    money: float


class AccountReport(Struct, frozen=True):
    """The cost of a task, and the cost it saved by not repeating calls."""

    spent: Spent
    saved: Savings
    time: timedelta
    by_function: list[CostOf]


async def family(ask: Ask[FamilyQuery, None]) -> Answer:
    task, _ = await glance_at(ask)
    return Answer(await aside(lambda: ask.app.tasks.family(task, limit=ask.query.limit)), is_large=True)


async def audit(ask: Ask[Nothing, None]) -> Answer:
    _, row = await glance_at(ask)
    found = await aside(lambda: verify(store_of(ask.app.tasks), [row.id]))
    broken = next((one for one in found.broken if one.uid == row.uid), None)
    return Answer(
        ChainReport(
            broken is None,
            row.event_count,
            row.event_head.hex(),
            broken.event if broken is not None else None,
            broken.problem if broken is not None else "",
            found.unseen,
        )
    )


async def account(ask: Ask[Nothing, None]) -> Answer:
    task, _ = await glance_at(ask)
    found = await aside(lambda: account_of(ask.app.tasks, task))
    return Answer(AccountReport(found.spent, found.saved, found.spent.time, _by_function(found)))


def _by_function(account: TaskAccount) -> list[CostOf]:
    sums: dict[tuple[str, str], list[float]] = {}
    for call in account.calls:
        total = sums.setdefault((call.name, call.model), [0, 0, 0, 0.0])
        for at, amount in enumerate((1, call.input_tokens, call.output_tokens, call.money)):
            total[at] += amount
    found = [CostOf(*key, int(n), int(given), int(made), money) for key, (n, given, made, money) in sums.items()]
    return sorted(found, key=lambda one: one.money, reverse=True)[:_MOST_CALLS]


def _look(name: str, does: str, handler: Any, answer: Any, **more: Any) -> Route:
    path = f"/v1/tasks/{{task}}/{name}"
    return Route(method="GET", path=path, handler=handler, does=does, scopes=("tasks:read",), answer=answer, **more)


ROUTES = (
    _look(
        "family",
        "The tasks that started this one, that it has started, and that it depends on.",
        family,
        Family,
        query=FamilyQuery,
    ),
    _look("audit", "Whether a task's events are as they were written, and their head.", audit, ChainReport),
    _look("account", "What a task has cost, and what it did not repeat.", account, AccountReport),
)
