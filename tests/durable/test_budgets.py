"""A task spends no more than it may, whichever process it runs in."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import budgets
from perdure._durable import durable, step
from perdure._durable.attempt.scopes import current
from perdure._durable.inspect.task_account import account_of
from perdure._durable.journal import read_line
from perdure._durable.models.budget_accounts import Budget, BudgetAccount, Spent, carried, spent_in, spent_note
from perdure._durable.models.model_decorator import Usage, model_call
from perdure._durable.streams.stream_reader import row_of
from perdure._ground.clock import MovableClock
from perdure._model import Entry
from perdure.errors import BudgetExhausted, InvalidInput, NoTask
from tests.durable.kept_kit import World, go_on, kill
from tests.support.processes import nursery
from tests.torture.kills import Home


@model_call(model="fake-1", usage=lambda _: Usage(input_tokens=60, output_tokens=40, money=0.1))
async def _ask(folder: str, number: int) -> int:
    World(Path(folder)).note(number)
    return number


@durable
async def spending(folder: str) -> int:
    world = World(Path(folder))
    for number in range(6):
        await _ask(folder, number)
        world.may_die(number)
    return 6


BUDGETS: dict[str, Budget] = {
    "tokens": Budget(tokens=300),
    "money": Budget(money=0.3),
    "enough": Budget(tokens=600, money=0.6, time=timedelta(hours=1)),
}


async def run_spending(home: Home, folder: Path, budget: str = "tokens") -> Any:
    async with home.open() as app:
        return await app.run("spending", spending.options(budget=BUDGETS[budget]), str(folder))


async def run_unnamed(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("spending", spending, str(folder))


@pytest.mark.parametrize("budget", ["tokens", "money"])
async def test_the_call_after_the_budget_is_used_up_is_not_made(quick_home: Home, tmp_path: Path, budget: str) -> None:
    with pytest.raises(BudgetExhausted) as raised:
        await run_spending(quick_home, tmp_path, budget)
    assert World(tmp_path).notes() == ["0", "1", "2"]
    assert (raised.value.budget, raised.value.task_id) == (budget, "spending")


async def test_a_budget_that_suffices_is_not_noticed(quick_home: Home, tmp_path: Path) -> None:
    assert await run_spending(quick_home, tmp_path, "enough") == 6


def test_what_was_spent_before_a_crash_counts_after_it(home: Home, tmp_path: Path) -> None:
    world = World(tmp_path)
    with nursery() as children:
        for number in (0, 1):
            world.die_at(number)
            kill(children, run_spending, home, tmp_path)
        # The process that carries it on names no budget: the one it was started with holds.
        with pytest.raises(BudgetExhausted):
            go_on(children, run_unnamed, home, tmp_path)
    assert world.notes() == ["0", "1", "2"]


async def test_a_task_that_failed_for_its_budget_goes_on_with_a_larger_one(quick_home: Home, tmp_path: Path) -> None:
    async with quick_home.open() as app:
        with pytest.raises(BudgetExhausted):
            await app.run("spending", spending.options(budget=BUDGETS["tokens"]), str(tmp_path))
        await (await app.tasks.handle("spending")).resume()
        assert await app.run("spending", spending.options(budget=BUDGETS["enough"]), str(tmp_path)) == 6
    assert World(tmp_path).notes() == ["0", "1", "2", "3", "4", "5"]


# ── code that winds up ───────────────────────────────────────────────────────────────────────────


@step(flush=True)
async def _sum_up(folder: str, calls: int) -> str:
    World(Path(folder)).note(f"after {calls}")
    return f"{calls} calls"


@durable
async def careful(folder: str) -> str:
    calls = 0
    try:
        while True:
            await _ask(folder, calls)
            calls += 1
    except BudgetExhausted:
        found = await _sum_up(folder, calls)
    World(Path(folder)).may_die("end")
    return found


async def run_careful(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("careful", careful.options(budget=Budget(tokens=200)), str(folder))


def test_code_that_winds_up_does_so_again_in_replay(home: Home, tmp_path: Path) -> None:
    World(tmp_path).die_at("end")
    with nursery() as children:
        kill(children, run_careful, home, tmp_path)
        assert go_on(children, run_careful, home, tmp_path) == "2 calls"
    assert World(tmp_path).notes() == ["0", "1", "after 2"]


# ── other spending ───────────────────────────────────────────────────────────────────────────────


@step(flush=True)
async def _rent() -> None:
    budgets.spend(money=0.5)


@durable
async def renting(folder: str) -> list[float]:
    before = budgets.spent()
    budgets.spend(tokens=10, money=0.25)
    await _rent()
    after = budgets.spent()
    await _rent()
    World(Path(folder)).may_die("end")
    return [before.money, after.money]


async def run_renting(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("renting", renting, str(folder))


async def test_spending_is_charged_once_and_read_alike_in_replay(home: Home, tmp_path: Path) -> None:
    World(tmp_path).die_at("end")
    with nursery() as children:
        kill(children, run_renting, home, tmp_path)
        assert go_on(children, run_renting, home, tmp_path) == [0.0, 0.75]
    async with home.open() as app:
        spent = (await account_of(app, "renting")).spent
    assert (spent.tokens, spent.money) == (10, 1.25)


searched: list[int] = []


@step
async def search(number: int) -> int:
    searched.append(number)
    budgets.spend(money=0.4)
    return number


@durable
async def searches() -> int:
    for number in range(4):
        budgets.check()
        await search(number)
    return 4


async def test_what_is_no_model_call_asks_the_budget_by_itself(quick_home: Home) -> None:
    searched.clear()
    async with quick_home.open() as app:
        with pytest.raises(BudgetExhausted):
            await app.run("job", searches.options(budget=Budget(money=1.0)))
        assert searched == [0, 1, 2]
        await (await app.tasks.handle("job")).resume()
        assert await app.run("job", searches.options(budget=Budget(money=5.0))) == 4
        assert searched == [0, 1, 2, 3], "what was done is not asked for again"


def test_outside_a_task_there_is_nobody_to_charge() -> None:
    with pytest.raises(NoTask):
        budgets.spend(money=1)


@pytest.mark.parametrize("odd", [{"money": float("nan")}, {"money": float("inf")}, {"tokens": "5"}, {"money": None}])
async def test_what_is_no_number_is_not_charged_and_the_budget_goes_on_counting(quick_home: Home, odd: Any) -> None:
    @durable
    async def renting() -> float:
        with pytest.raises(InvalidInput, match="give finite numbers"):
            budgets.spend(**odd)
        budgets.spend(money=2.0)
        budgets.check()
        return 0.0

    async with quick_home.open() as app:
        with pytest.raises(BudgetExhausted):
            await app.run("renting", renting.options(budget=Budget(money=1.0)))


async def test_a_price_that_is_no_number_is_not_counted(quick_home: Home) -> None:
    @model_call(model="big-2", usage=lambda _: Usage(input_tokens=1, money=float("nan")))
    async def ask(messages: list[str]) -> str:
        return "hi"

    @durable
    async def asking() -> float:
        await ask(["a"])
        return budgets.spent().money

    async with quick_home.open() as app:
        assert await app.run("asking", asking) == 0.0


# ── time ─────────────────────────────────────────────────────────────────────────────────────────


async def test_time_is_the_time_of_the_attempts(
    quick_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = MovableClock(tmp_path / "clock")
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(clock.path))

    @model_call(model="fake-1")
    async def think(minutes: int) -> None:
        clock.advance(minutes=minutes)

    @durable
    async def thinking() -> None:
        for minutes in (20, 20, 20, 20):
            await think(minutes)

    async with quick_home.open() as app:
        with pytest.raises(BudgetExhausted, match="time"):
            await app.run("thinking", thinking.options(budget=Budget(time=timedelta(minutes=50))))
        clock.advance(hours=8)
        row = await row_of(app._store, "thinking")
        entries = await read_line(app._store, row.uid, row.line)
    assert sum(entry.op == "model" for _, entry in entries) == 3


def test_time_between_attempts_is_not_spent() -> None:
    minute = 60_000
    entries = [
        Entry("result", "step", "|a#1", b"", at=10 * minute, took_ms=minute, epoch=1),
        Entry("result", "step", "|a#2", b"", at=12 * minute, epoch=1),
        Entry("result", "step", "|a#3", b"", at=900 * minute, took_ms=4 * minute, epoch=2),
    ]
    assert spent_in(entries).time == timedelta(minutes=7)


# ── forks ────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_that_begins_without_its_entries_still_carries_what_they_cost() -> None:
    before = [
        Entry("result", "model", "|a#1|model", b"", at=60_000, epoch=1, note=spent_note(10, 0.1)),
        Entry("result", "model", "|a#2|model", b"", at=120_000, epoch=1, note=spent_note(20, 0.2)),
    ]
    after = [carried(before), Entry("result", "model", "|a#1|model", b"", at=1, epoch=2, note=spent_note(1, 0.1))]
    assert spent_in(before) == Spent(tokens=30, money=0.3, time=timedelta(minutes=1))
    assert spent_in(after) == Spent(tokens=31, money=0.4, time=timedelta(minutes=1))


async def test_a_task_that_begins_with_a_journal_begins_with_what_it_cost(quick_home: Home, tmp_path: Path) -> None:
    @durable
    async def looking() -> None:
        scope = current.get()
        assert scope is not None
        attempt = scope.attempt
        attempt.entries = [(1, carried([Entry("result", "spent", "|x|spent", b"", note=spent_note(250, 0.0))]))]
        attempt.seldom.parts.clear()
        account = attempt.part(BudgetAccount)
        account.budget = Budget(tokens=300)
        for number in range(2):
            await _ask(str(tmp_path), number)

    async with quick_home.open() as app:
        with pytest.raises(BudgetExhausted):
            await app.run("looking", looking)
    assert World(tmp_path).notes() == ["0"]
