"""Forks of durable functions: what had ended stays done, what follows is the fork's own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perdure import (
    Perdure,
    budgets,
    carry_over,
    checkpoint,
    durable,
    effect,
    idempotency_key,
    pause,
    signals,
    span,
    step,
)
from perdure._durable.lifecycle.lines.task_fork import changed
from perdure._ground.encoding import codec
from perdure.cli import main
from perdure.errors import AlreadyExists, BudgetExhausted, InvalidInput, NotFound
from perdure.models import Budget
from tests.durable.effects_kit import Died, Places, World, raising, until_paused, wait_until
from tests.support.fixtures import emptied_for_each_test

world = World()
ran: list[str] = []


_nothing_happened = emptied_for_each_test(world.done, world.keys, world.undone, ran)


@dataclass
class Order:
    id: str
    cents: int


@step
async def price(item: str) -> int:
    ran.append(f"price {item}")
    return len(item) * 100


def refund(result: str, what: str) -> None:
    world.undone.append(what)


@effect(undo=refund)
async def charge(what: str) -> str:
    return world.do(what, idempotency_key())


@durable
async def shop(first: str, second: str) -> list[Any]:
    one = await price(first)
    paid = await charge(first)
    two = await price(second)
    more = await charge(second)
    return [one, paid, two, more]


@pytest.mark.req("R67")
async def test_a_fork_repeats_nothing_up_to_its_step_and_does_the_rest_itself(url: str) -> None:
    async with Perdure(url) as app:
        await app.run("a", shop, "pen", "ink")
        task = await app.tasks.handle("a")
        fork = await task.fork("b", at="charge#1")
        assert (fork.created, fork.status) == (True, "running")
        assert await app.run("b", shop, "pen", "ink") == [300, "receipt of pen", 300, "receipt of ink"]
        assert ran == ["price pen", "price ink", "price ink"]
        assert world.done == ["pen", "ink", "ink"]
        assert len(set(world.keys)) == 3  # the fork's effect is another one, under another key
        ledger = await app.effects.of("b")
        assert [(one.name, one.is_inherited) for one in ledger] == [("charge", True), ("charge", False)]
        events = await app.tasks.events("b")
        assert events[0].data["forked_from"] == "a" and events[0].data["position"] == 3


async def test_a_step_is_named_by_number_path_or_name_and_what_is_not_there_is_refused(url: str) -> None:
    async with Perdure(url) as app:
        await app.run("a", shop, "pen", "ink")
        task = await app.tasks.handle("a")
        for number, at in enumerate(["3", "|charge#1", "charge#1"]):
            await task.fork(f"f{number}", at=at)
            assert len(await app.effects.of(f"f{number}")) == 1
        with pytest.raises(InvalidInput, match="2 steps 'charge'"):
            await task.fork("no", at="charge")
        for wrong in ("nothing", "99", "charge#7"):
            with pytest.raises(NotFound):
                await task.fork("no", at=wrong)
        with pytest.raises(AlreadyExists):
            await task.fork("a")
        assert await app.tasks.get("no") is None


async def test_a_fork_from_the_beginning_may_have_other_arguments(url: str) -> None:
    async with Perdure(url) as app:
        await app.run("a", shop, "pen", "ink")
        task = await app.tasks.handle("a")
        await task.fork("b", at="0", set={"second": "nib"})
        assert await app.run("b", shop, "pen", "nib") == [300, "receipt of pen", 300, "receipt of nib"]
        with pytest.raises(InvalidInput, match="no argument and no state 'third'"):
            await task.fork("no", set={"third": 1})
        assert await app.tasks.get("no") is None


async def test_an_argument_is_set_by_plain_data_or_by_its_own_type_and_a_wrong_one_is_refused(url: str) -> None:
    @durable
    async def bill(order: Order, note: str = "") -> str:
        return f"{order.id} {order.cents} {note}"

    async with Perdure(url) as app:
        await app.run("a", bill, Order("o", 1))
        task = await app.tasks.handle("a")
        await task.fork("b", set={"order": {"id": "p", "cents": 2}, "note": "n"})
        await task.fork("c", set={"order": Order("q", 3)})
        assert await app.run("b", bill, Order("p", 2), "n") == "p 2 n"
        assert await app.run("c", bill, Order("q", 3)) == "q 3 "
        with pytest.raises(InvalidInput, match="order cannot be 7"):
            await task.fork("no", set={"order": 7})


async def test_an_effect_that_was_open_is_not_copied(quick_url: str, monkeypatch: Any) -> None:
    async with Perdure(quick_url) as app:
        Places(monkeypatch).at("effect.done", raising(Died()))
        with pytest.raises(Died):
            await app.run("a", shop, "pen", "ink")
        task = await app.tasks.handle("a")
        await task.fork("b")
        assert await app.effects.of("b") == []
        assert await app.run("b", shop, "pen", "ink") == [300, "receipt of pen", 300, "receipt of ink"]
        assert world.done == ["pen", "pen", "ink"] and ran == ["price pen", "price ink"]


async def test_cancelling_a_fork_undoes_its_own_effects_and_not_its_sources(quick_url: str) -> None:
    @durable
    async def two_and_wait(first: str, second: str) -> None:
        await charge(first)
        await charge(second)
        await pause.input("go on?", str)

    async with Perdure(quick_url) as app:
        await until_paused(app, "a", two_and_wait, "pen", "ink")
        await (await app.tasks.handle("a")).fork("b", at="charge#1")
        await until_paused(app, "b", two_and_wait, "pen", "ink")
        await (await app.tasks.handle("b")).cancel()
        assert world.undone == ["ink"]
        await (await app.tasks.handle("a")).cancel()
        assert world.undone == ["ink", "ink", "pen"]
        with pytest.raises(InvalidInput, match="was undone"):
            await (await app.tasks.handle("a")).fork("c", at="charge#1")


async def test_what_was_spent_comes_along(url: str) -> None:
    @durable
    async def spender(rounds: int) -> float:
        for _ in range(rounds):
            budgets.spend(tokens=10, money=0.5)
            await price("x")
        return budgets.spent().money

    limited = spender.options(budget=Budget(tokens=1000))
    async with Perdure(url) as app:
        assert await app.run("a", limited, 4) == 2.0
        task = await app.tasks.handle("a")
        await task.fork("b", at="price#2")
        assert await app.run("b", spender, 4) == 2.0  # two rounds were the source's
        assert ran.count("price x") == 4 + 2


async def test_answers_and_signals_that_were_given_are_not_asked_for_again(quick_url: str) -> None:
    @durable
    async def asker() -> list[str]:
        name = await pause.input("name?", str)
        word = await signals.next("word", str)
        return [name, word, await pause.input("more?", str)]

    async with Perdure(quick_url) as app:
        await until_paused(app, "a", asker)
        task = await app.tasks.handle("a")
        await task.answer("ada")
        await until_paused(app, "a", asker)
        await task.signal("word", "hello")
        await until_paused(app, "a", asker)
        await task.fork("b")
        await task.answer("no more")
        assert (await until_paused(app, "b", asker)).message == "more?"
        await (await app.tasks.handle("b")).answer("yes")
        assert await app.run("b", asker) == ["ada", "hello", "yes"]
        assert await app.run("a", asker) == ["ada", "hello", "no more"]


async def test_a_fork_of_saved_work_has_the_state_of_its_step(url: str) -> None:
    @durable
    async def saver(total: int) -> dict[str, int]:
        state = await checkpoint.last({"done": 0, "bonus": 0})
        while state["done"] < total:
            await price(f"i{state['done']}")
            state["done"] += 1
            async with span(f"round {state['done']}"):
                await checkpoint.save(state)
        return state

    async with Perdure(url) as app:
        await app.run("a", saver, 4)
        task = await app.tasks.handle("a")
        fork = await task.fork("b", at="checkpoint.save#2", set={"bonus": 5})
        assert fork.state == {"done": 2, "bonus": 5}
        assert await app.run("b", saver, 4) == {"done": 4, "bonus": 5}
        assert ran[4:] == ["price i2", "price i3"]
        plain = await task.fork("c")
        assert plain.state == {"done": 4, "bonus": 0}


async def test_a_killed_fork_leaves_a_whole_task_or_none(quick_url: str, monkeypatch: Any) -> None:
    async with Perdure(quick_url) as app:
        await app.run("a", shop, "pen", "ink")
        task = await app.tasks.handle("a")
        Places(monkeypatch).at("committer.before_commit", raising(RuntimeError("cut")))
        with pytest.raises(Exception, match="cut"):
            await task.fork("b")
        assert await app.tasks.get("b") is None
        await task.fork("b")
        assert await app.run("b", shop, "pen", "ink") == await app.run("a", shop, "pen", "ink")
        assert world.done == ["pen", "ink"]


async def test_a_fork_and_its_source_go_on_side_by_side(quick_url: str) -> None:
    @durable
    async def waits(first: str) -> str:
        await charge(first)
        return await pause.input("what?", str)

    async with Perdure(quick_url) as app, app.worker():
        await app.start("a", waits, "pen")
        await app.tasks.wait_for("a", status="paused")
        task = await app.tasks.handle("a")
        await task.fork("b")
        await app.tasks.wait_for("b", status="paused")
        await (await app.tasks.handle("b")).answer("two")
        await wait_until(lambda: _is(app, "b", "completed"))
        assert world.done == ["pen"]
        assert not await _is(app, "a", "completed")


async def _is(app: Perdure, id: str, status: str) -> bool:
    record = await app.tasks.get(id)
    return record is not None and record.status == status


async def test_from_the_shell(tmp_path: Path, capsys: Any) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    async with Perdure(url) as app:
        await app.run("a", shop, "pen", "ink")

    def said(*words: str) -> tuple[int, Any]:
        code = main([*words, "--store", url, "--json"])
        found = capsys.readouterr()
        return code, json.loads(found.out or found.err)

    code, found = said("journal", "a")
    listed = [(one["position"], one["path"], one["op"], one["state"]) for one in found["items"]]
    assert code == 0 and listed[:2] == [(1, "price#1", "step", "done"), (3, "charge#1", "effect", "done")]
    code, found = said("fork", "a", "b", "--at", "charge#1", "--set", "second=nib")
    assert (code, found["id"], found["status"]) == (0, "b", "running")
    assert said("fork", "a", "c", "--at", "nothing")[0] == 3
    assert said("fork", "a", "c", "--set", "third=1")[0] == 2
    assert said("fork", "a", "b")[0] == 4
    assert [said("fork", "a", "--at", "charge#1")[1]["id"] for _ in range(3)] == ["a-fork", "a-fork-2", "a-fork-3"]
    async with Perdure(url) as app:
        assert (await app.run("b", shop, "pen", "nib"))[3] == "receipt of nib"
    assert main(["journal", "a", "--store", url]) == 0
    assert "charge#2" in capsys.readouterr().out


async def test_a_budget_is_the_forks_too(quick_url: str) -> None:
    from perdure import model_call
    from perdure.models import Usage

    @model_call(model="m", usage=lambda reply: Usage(input_tokens=60))
    async def ask(messages: list[str]) -> str:
        return "fine"

    @durable
    async def talk(times: int) -> int:
        for number in range(times):
            await ask([f"{number}"])
        return times

    async with Perdure(quick_url) as app:
        assert await app.run("a", talk.options(budget=Budget(tokens=120)), 2) == 2
        task = await app.tasks.handle("a")
        await task.fork("b", at="ask#1", set={"times": 3})
        with pytest.raises(BudgetExhausted):
            await app.run("b", talk, 3)


async def test_what_was_spent_comes_along_to_the_next_line(url: str) -> None:
    @durable
    async def rounds(n: int) -> list[float]:
        budgets.spend(tokens=10, money=0.25)
        await price("x")
        if n > 1:
            await carry_over(n - 1)
        spent = budgets.spent()
        return [spent.tokens, spent.money]

    async with Perdure(url) as app:
        assert await app.run("a", rounds, 4) == [40, 1.0]
        fork = await (await app.tasks.handle("a")).fork("b", at="0")
        assert fork.created and await app.run("b", rounds, 1) == [40, 1.0]


def test_an_argument_of_a_function_that_only_workers_know_has_to_fit_their_schema() -> None:
    takes = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "offset": {"$ref": "#/$defs/Offset"}},
        "required": ["name", "offset"],
        "$defs": {"Offset": {"type": "integer", "minimum": 0}},
    }
    given = codec.encode({"name": codec.encode("soyuz"), "offset": codec.encode(3)})
    with pytest.raises(InvalidInput, match="offset cannot be changed so") as refused:
        changed(None, "launch", given, None, {"offset": "abc"}, takes)
    assert refused.value.errors[0]["path"] == ["offset"]
    data, _ = changed(None, "launch", given, None, {"offset": 5}, takes)
    assert codec.decode(codec.decode(data)["offset"]) == 5
