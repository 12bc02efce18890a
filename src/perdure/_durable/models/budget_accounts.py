"""Budgets of tokens, money and time, checked before each model call.

Spending is recorded in the journal: in the notes of model calls (model_decorator.py) and of `budgets.spend`. So it
outlives the process, and a fork begins with what its copied journal cost. A call that is interrupted after its usage
was recorded is paid for twice and counted twice.

A budget is a brake, not a wall: it is checked before a call, so the last call can exceed it by its own cost. Time is
the time of the attempts; a task that waits for a person spends none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from math import isfinite
from typing import Any

from msgspec import Struct

from perdure._durable.attempt import Attempt, Paused, Policy, RecordedCall, Scope, current, walk_here
from perdure._model import CARRIED, Budget, Entry
from perdure._replay import digest
from perdure._store import Store
from perdure.errors import BudgetExhausted, InvalidInput, NoTask

Note = dict[str, str | int | float | None]
# Money is rounded to a millionth of a cent, so that 0.1 + 0.2 is 0.3.
_MONEY_DIGITS = 8


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and isfinite(value)


class Spent(Struct, frozen=True, kw_only=True):
    """The spending of a task."""

    tokens: int = 0
    money: float = 0.0
    time: timedelta = timedelta(0)


def spend(*, tokens: int = 0, money: float = 0.0) -> None:
    """Charge something that is not a model call: a search, a rented machine. It is charged once, also in replay.

    Raises:
        InvalidInput: not a finite number, which would spoil every later sum.
        NoTask: there is no task to charge.
    """
    if not _is_number(tokens) or not _is_number(money):
        raise InvalidInput(f"budgets.spend got tokens={tokens!r}, money={money!r}", do="give finite numbers")
    scope = _scope("budgets.spend")
    note = spent_note(tokens, money)
    if scope.is_body:
        scope.attempt.part(BudgetAccount).charge(note, "spent", f"{scope.path}|spent")
    else:
        walk_here(_Once(scope, "budgets.spend", digest((tokens, money), {}), None, note))


def check() -> None:
    """Check the budget before something costly that is not a model call. Nothing is recorded, and a replay does not
    check.

    Raises:
        BudgetExhausted: a limit is reached.
        NoTask: there is no task and so no budget.
    """
    scope = _scope("budgets.check")
    if scope.is_body or not scope.attempt.is_replaying:
        scope.attempt.part(BudgetAccount).check()


def spent() -> Spent:
    """The task's spending when the code first asked here; the same in a replay."""
    scope = _scope("budgets.spent")
    now = scope.attempt.part(BudgetAccount).spent()
    if scope.is_body:
        return now
    found: Spent = walk_here(_Once(scope, "budgets.spent", digest((), {}), now, None))
    return found


def _scope(name: str) -> Scope:
    scope = current.get()
    if scope is None:
        raise NoTask(name)
    scope.attempt.fence.check()
    if scope.attempt.unwinding.has_begun:
        raise Paused
    return scope


class _Once(RecordedCall):
    """A value that is recorded the first time, and read afterwards."""

    op = "inline"
    policy = Policy(is_plain=True, flush=False, waits_to_start=False, is_under_way=False, counts=False)

    def __init__(self, scope: Scope, name: str, asked: bytes, given: Any, note: Note | None) -> None:
        super().__init__(scope, name, asked)
        self.as_type, self._given, self.note = type(given), given, note

    def make(self) -> Any:
        return self._given

    def after_record(self, position: int, entry: Entry) -> None:
        if self.note:
            self.attempt.part(BudgetAccount).add(self.note)


# ── the account ──────────────────────────────────────────────────────────────────────────────────


def spent_note(tokens: int = 0, money: float = 0.0, **more: str | int | float | None) -> Note:
    """The note of an entry that has a cost."""
    return {**more, "spent_tokens": tokens, "spent_money": money}


class BudgetAccount:
    """The spending and the limits of a task, during one attempt."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._before = spent_in(entry for _, entry in attempt.entries)
        self._tokens, self._money = self._before.tokens, self._before.money
        self._began = attempt.began
        self._mutex = threading.Lock()  # plain functions call models from their threads
        self.budget: Budget | None = None

    def spent(self) -> Spent:
        now = timedelta(milliseconds=self._attempt.store.clock.now_ms() - self._began)
        return Spent(tokens=self._tokens, money=self._money, time=self._before.time + now)

    def charge(self, note: Note, op: str, path: str, value: bytes | None = None) -> None:
        """Record an entry that has a cost."""
        attempt = self._attempt
        attempt.record(
            Entry("result", op, path, b"", value, at=attempt.store.clock.now_ms(), epoch=attempt.epoch, note=note)
        )
        self.add(note)

    def add(self, note: Mapping[str, Any]) -> None:
        with self._mutex:
            self._tokens += int(note.get("spent_tokens") or 0)
            self._money = round(self._money + float(note.get("spent_money") or 0), _MONEY_DIGITS)

    def check(self) -> None:
        """Return if another call is within the budget.

        Raises:
            BudgetExhausted: a limit is reached; nothing was called.
        """
        if self.budget is None:
            return
        spent = self.spent()
        for what in ("tokens", "money", "time"):
            limit = getattr(self.budget, what)
            if limit is not None and getattr(spent, what) >= limit:
                raise BudgetExhausted(self._attempt.task_id, what, str(limit), str(getattr(spent, what)))


def spent_in(entries: Iterable[Entry]) -> Spent:
    """The cost in these entries. Time counts from the first to the last entry of each attempt."""
    tokens, money, ms = 0, 0.0, 0
    spans: dict[int, tuple[int, int]] = {}
    for entry in entries:
        if entry.at:
            begun, ended = spans.get(entry.epoch, (entry.at - entry.took_ms, entry.at))
            spans[entry.epoch] = (min(begun, entry.at - entry.took_ms), max(ended, entry.at))
        note = entry.note
        if note and "spent_tokens" in note:
            tokens += int(note["spent_tokens"] or 0)
            money += float(note["spent_money"] or 0)
            ms += int(note.get("spent_ms") or 0)
    ms += sum(ended - begun for begun, ended in spans.values())
    return Spent(tokens=tokens, money=round(money, _MONEY_DIGITS), time=timedelta(milliseconds=ms))


def carried(entries: Iterable[Entry], begun_with: bytes = b"", without: Iterable[Entry] = ()) -> Entry:
    """One entry with the cost of all these but for `without`: the first entry of a line that begins without them.

    It also holds the arguments the task was started with, if the line has others.
    """
    spent, less = spent_in(entries), spent_in(without)
    tokens, money = max(spent.tokens - less.tokens, 0), max(round(spent.money - less.money, _MONEY_DIGITS), 0.0)
    time = max(spent.time - less.time, timedelta())
    note = spent_note(tokens, money, spent_ms=int(time.total_seconds() * 1000))
    return Entry("result", "spent", CARRIED, begun_with, note=note)


def original_arguments(entries: Sequence[Entry]) -> bytes:
    """The arguments its task was started with, recorded in a line that has others; empty for any other line."""
    return entries[0].digest if entries and entries[0].op == "spent" else b""


# ── with the task ────────────────────────────────────────────────────────────────────────────────


def seal_budget(store: Store, uid: str, budget: Budget | None) -> bytes | None:
    return None if budget is None else store.seal(uid, "budget", budget, Budget)


def open_account(attempt: Attempt, stored: bytes | None, chosen: Budget | None) -> None:
    """Set the budget. One that the function has now overrides the stored one, so that it can be raised."""
    if stored is None and chosen is None:
        return  # most tasks: the account is made when something is spent
    budget: Budget | None = attempt.store.unseal(attempt.uid, "budget", stored, Budget) if stored else None
    attempt.part(BudgetAccount).budget = chosen if chosen is not None else budget
