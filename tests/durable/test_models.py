"""A model call is paid for once, and a conversation is stored once."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from perdure import pause
from perdure._durable import durable, step
from perdure._durable.inspect.task_account import account_of, stored_bytes
from perdure._durable.models.budget_accounts import Budget, spent_note
from perdure._durable.models.model_decorator import Price, Usage, model_call, usage_of
from perdure._durable.models.savings import Savings, savings_of
from perdure._ground.encoding import codec
from perdure._model import Entry
from tests.durable.kept_kit import World, go_on, kill
from tests.support.processes import nursery
from tests.torture.kills import Home

Message = dict[str, str]
PRICE = Price(input=3.0, output=15.0)


# ── a crash ──────────────────────────────────────────────────────────────────────────────────────


@model_call(model="fake-1", price=PRICE, usage=lambda _: Usage(input_tokens=100, output_tokens=20))
async def _ask(folder: str, messages: list[Message]) -> Message:
    world = World(Path(folder))
    world.note(f"call {len(messages)}")
    return {"role": "assistant", "content": f"{random.random()}"}


@step
async def _look_up(number: int) -> int:
    return number * number


@durable
async def chatting(folder: str) -> list[Message]:
    world, messages = World(Path(folder)), [{"role": "system", "content": "be brief"}]
    for number in range(5):
        messages.append({"role": "user", "content": f"question {await _look_up(number)}"})
        messages.append(await _ask(folder, messages))
        world.note(messages[-1]["content"], "answers")
        world.may_die(number)
    return messages


async def run_chatting(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("chatting", chatting, str(folder))


async def _account(home: Home, id: str) -> Any:
    async with home.open() as app:
        return await account_of(app, id)


async def _last_event(home: Home, id: str) -> Any:
    async with home.open() as app:
        return (await app.tasks.events(id))[-1]


@pytest.mark.req("R66", "R116")
async def test_recorded_calls_are_not_made_again_and_their_answers_are_the_same(home: Home, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.die_at(2)
    with nursery() as children:
        kill(children, run_chatting, home, tmp_path)
        recorded = (await _account(home, "chatting")).saved
        messages = go_on(children, run_chatting, home, tmp_path)
    assert len(world.notes()) == 5
    answers = [message["content"] for message in messages if message["role"] == "assistant"]
    assert world.notes("answers") == [*answers[:3], *answers]
    account = await _account(home, "chatting")
    assert account.saved == recorded
    assert (recorded.calls, recorded.tokens, recorded.money) == (3, 360, pytest.approx(0.0018))
    assert [call.model for call in account.calls] == ["fake-1"] * 5
    assert len({call.prompt for call in account.calls}) == 5
    assert account.calls[-1].messages == messages[:-1]


@pytest.mark.req("R66")
async def test_a_call_that_was_paid_and_then_lost_is_counted_as_paid_twice(home: Home, tmp_path: Path) -> None:
    with nursery() as children:
        kill(children, run_chatting, home, tmp_path, at="model.noted", count=3)
        go_on(children, run_chatting, home, tmp_path)
    account = await _account(home, "chatting")
    assert len(World(tmp_path).notes()) == 6
    assert account.saved.calls == 2
    # The kill came right after the note: it may have reached the disk, or gone with its process.
    assert account.spent.tokens == 120 * len(account.calls) and len(account.calls) in (5, 6)


@pytest.mark.req("R116")
async def test_a_task_that_is_resumed_reports_what_it_saved(home: Home, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.die_at(4)
    with nursery() as children:
        kill(children, run_chatting, home, tmp_path)
        go_on(children, run_chatting, home, tmp_path)
    saved = (await _last_event(home, "chatting")).data["saved"]
    assert (saved["steps"], saved["calls"], saved["tokens"]) == (10, 5, 600)


async def test_a_task_that_never_stopped_has_saved_nothing(quick_home: Home, tmp_path: Path) -> None:
    await run_chatting(quick_home, tmp_path)
    if quick_home.kind == "sqlite":
        assert (await _account(quick_home, "chatting")).saved.is_nothing


def test_a_call_whose_reply_was_lost_has_saved_nothing() -> None:
    kept = Entry("result", "step", "|ask#1", b"", b"", took_ms=2000)
    noted = [Entry("result", "model", f"|ask#{n}|model", b"", note=spent_note(100, 0.5)) for n in (1, 2)]
    under_way = Entry("result", "stream", "|ask#2|stream:a#1|pieces", b"", codec.encode(["abc", "de"]))
    saved = savings_of([noted[0], kept, noted[1], under_way])
    assert saved == Savings(steps=1, calls=1, tokens=100, money=0.5, characters=5, time=timedelta(seconds=2))
    assert str(saved) == (
        "not repeated: 1 step, 1 model call, 100 tokens, 5 streamed characters, 0.5000 of money, 2.0 s"
    )


# ── stored once ──────────────────────────────────────────────────────────────────────────────────


class Talk(NamedTuple):
    """A conversation that grows by two messages a call, and what it takes."""

    added: int
    stored: int


async def _talk(home: Home, calls: int) -> Talk:
    words = random.Random(calls)
    added = 0

    def text() -> str:
        return words.randbytes(250).hex()

    @model_call(model="fake-1", usage=lambda _: Usage(input_tokens=1))
    async def ask(messages: list[Message]) -> Message:
        return {"role": "assistant", "content": text()}

    @durable(name="talk")
    async def talk(calls: int) -> int:
        nonlocal added
        messages: list[Message] = []
        for _ in range(calls):
            messages.append({"role": "user", "content": text()})
            messages.append(await ask(messages))
        added = sum(len(message["content"]) for message in messages)
        return len(messages)

    async with home.open() as app:
        await app.run(f"talk-{calls}", talk, calls)
        return Talk(added, await stored_bytes(app, f"talk-{calls}"))


@pytest.mark.req("R66")
async def test_a_hundred_calls_of_one_conversation_cost_the_bytes_of_its_messages(quick_home: Home) -> None:
    fifty, hundred = await _talk(quick_home, 50), await _talk(quick_home, 100)
    assert hundred.added == 100 * 2 * 500
    assert hundred.stored <= 1.2 * hundred.added
    assert hundred.stored <= 2.05 * fifty.stored


async def test_an_edited_conversation_stores_only_what_is_new(quick_home: Home) -> None:
    long = [{"role": "user", "content": random.Random(n).randbytes(500).hex()} for n in range(20)]

    @model_call(model="fake-1")
    async def ask(messages: list[Message]) -> str:
        return "ok"

    @durable
    async def editing() -> None:
        await ask(long)
        for number in range(10):
            await ask([{"role": "system", "content": f"now {number}"}, *long])

    async with quick_home.open() as app:
        await app.run("editing", editing)
        assert await stored_bytes(app, "editing") <= 1.6 * 20 * 1000
        calls = (await account_of(app, "editing")).calls
    assert calls[-1].messages == [{"role": "system", "content": "now 9"}, *long]


# ── what a call says about itself ────────────────────────────────────────────────────────────────


class _Reply:
    def __init__(self, usage: Any) -> None:
        self.usage = usage


@pytest.mark.parametrize(
    "reply, usage",
    [
        ({"usage": {"input_tokens": 3, "output_tokens": 4}}, Usage(input_tokens=3, output_tokens=4)),
        ({"usage": {"prompt_tokens": 3, "completion_tokens": 4}}, Usage(input_tokens=3, output_tokens=4)),
        (_Reply(_Reply(None)), Usage()),
        ({"usage": {"input_tokens": 1, "cost": 0.5}}, Usage(input_tokens=1, money=0.5)),
        ("no usage at all", None),
    ],
)
def test_usage_is_read_by_the_names_that_providers_give_it(reply: Any, usage: Usage | None) -> None:
    assert usage_of(reply) == usage


async def test_the_model_may_be_an_argument_and_the_function_a_plain_one(quick_home: Home) -> None:
    @model_call(messages="prompt", price=PRICE)
    def ask(prompt: str, model: str) -> dict[str, Any]:
        return {"text": prompt.upper(), "usage": {"input_tokens": 1_000_000}}

    @durable
    async def shouting() -> str:
        return str(ask("hello", model="big-2")["text"])

    async with quick_home.open() as app:
        assert await app.run("shouting", shouting) == "HELLO"
        account = await account_of(app, "shouting")
    assert [(call.model, call.messages, call.money) for call in account.calls] == [("big-2", ["hello"], 3.0)]
    assert account.spent.tokens == 1_000_000


@pytest.mark.parametrize("ended", ["completed", "cancelled"])
async def test_a_task_that_has_ended_in_its_first_attempt_has_saved_nothing(quick_home: Home, ended: str) -> None:
    @step
    async def count(number: int) -> int:
        return number

    @durable
    async def counting(waits: bool) -> int:
        found = sum([await count(number) for number in range(5)])
        if waits:
            await pause.approval("Go on?")
        return found

    async with quick_home.open() as app:
        if ended == "completed":
            await app.run("counting", counting, False)
        else:
            await app.run_until_paused("counting", counting, True)
            assert (await account_of(app, "counting")).saved.steps == 5, "what its next attempt will not repeat"
            await (await app.tasks.handle("counting")).cancel()
        await (await app.tasks.handle("counting")).archive()  # an event after its end
        assert (await account_of(app, "counting")).saved.is_nothing


async def test_without_a_task_it_just_asks() -> None:
    @model_call(model="fake-1")
    async def ask(messages: list[Message]) -> str:
        return "plain"

    assert await ask([]) == "plain"


def test_a_budget_that_cannot_be_kept_is_refused() -> None:
    odd: list[dict[str, Any]] = [{"tokens": -1}, {"money": float("nan")}, {"tokens": "5"}, {"time": 5}]
    for limit in odd:
        ((name, value),) = limit.items()
        with pytest.raises(ValueError, match=f"{name}(=| is ){value!r}"):
            Budget(**limit)
