"""The runner: layers in the order of slots, within budget, and none of them can spoil a turn."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Perdure
from perdure.errors import InvalidInput, LeaseLost
from perdure.memory import Block, Budget, ContinuityLayer, DurableTaskState, Layer, PlanLayer, Timeouts, estimate, kit
from perdure.memory.prompt.budgets import allocate


class Said:
    """A layer that says one thing."""

    scope = "execution"

    def __init__(self, id: str, slot: int = 100, text: str = "", **more: Any) -> None:
        self.id, self.slot, self.text = id, slot, text or f"I am {id}."
        self.calls: list[Any] = []
        for name, value in more.items():
            setattr(self, name, value)

    async def init(self, context: Any) -> None:
        self.calls.append(("init", context.task_id))

    async def recall(self, budget: int) -> str:
        self.calls.append(("recall", budget))
        return self.text

    async def store(self, turn: Any) -> None:
        self.calls.append(("store", turn.depth))

    async def on_complete(self, outcome: str) -> None:
        self.calls.append(("complete", outcome))

    async def dispose(self) -> None:
        self.calls.append(("dispose",))


class Blocking:
    """A layer with plain functions."""

    id, slot, scope = "blocking", 5, "execution"

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def init(self, context: Any) -> None:
        self.threads.add(threading.current_thread().name)

    def recall(self, budget: int) -> Block:
        self.threads.add(threading.current_thread().name)
        return Block("user", "from a plain function")

    def store(self, turn: Any) -> None:
        self.threads.add(threading.current_thread().name)


budgets = st.tuples(st.integers(0, 200), st.none() | st.integers(0, 400)).map(
    lambda pair: Budget(pair[0], None if pair[1] is None else pair[0] + pair[1])
)


@pytest.mark.req("R129")
@given(listed=st.lists(budgets, max_size=8), total=st.integers(-5, 2_000))
def test_shares_keep_to_the_whole_and_to_each_layers_own_bounds(listed: list[Budget], total: int) -> None:
    shares = allocate(listed, total)
    assert sum(shares) <= max(0, total)
    for share, budget in zip(shares, listed, strict=True):
        assert share == 0 or budget.min <= share
        assert budget.max is None or share <= budget.max
    if sum(budget.min for budget in listed) <= total:
        assert all(share >= budget.min for share, budget in zip(shares, listed, strict=True))
        room = any(budget.max is None or share < budget.max for share, budget in zip(shares, listed, strict=True))
        assert sum(shares) == total or not room


@pytest.mark.req("R129")
@pytest.mark.parametrize(
    "listed, total, shares",
    [
        ([Budget(100, 800), Budget(50, 50), Budget(0, 200)], 150, [100, 50, 0]),
        ([Budget(100, 800), Budget(50, 50), Budget(0, 200)], 250, [178, 50, 22]),
        ([Budget(100, 200), Budget(100, 200)], 5_000, [200, 200]),
        ([Budget(100, 800), Budget(60, 60), Budget(10, 10)], 80, [0, 60, 10]),
        ([Budget(), Budget(0, 10)], 100, [91, 9]),
        ([Budget(5, 5)], 0, [0]),
    ],
)
def test_minimums_come_first_and_the_rest_goes_by_headroom(listed: Any, total: int, shares: Any) -> None:
    assert allocate(listed, total) == shares


@pytest.mark.req("R122", "R129")
async def test_blocks_stand_in_the_order_of_slots_and_of_the_list_within_one(memory_url: str) -> None:
    layers = [Said("late", 300), Said("one", 7), Said("two", 7), Said("first", -1), DurableTaskState()]
    async with Perdure(memory_url) as app, app.memory("order", layers) as memory:
        texts = [block.text for block in await memory.prompt_blocks(budget=4_000)]
        assert texts[:3] == ["I am first.", "I am one.", "I am two."]
        assert texts[3].startswith("<task_state>") and texts[4] == "I am late."


@pytest.mark.req("R129")
async def test_under_a_tight_budget_minimums_are_kept_and_the_rest_is_left_out(memory_url: str) -> None:
    layers = [
        Said("c", 30, "c " * 500, budget=Budget(40, 40)),
        Said("a", 10, "a " * 500, budget=Budget(50, 500)),
        Said("b", 20, "b " * 500, budget=Budget(30, 500)),
    ]
    async with Perdure(memory_url) as app, app.memory("tight", layers) as memory:
        blocks = await memory.prompt_blocks(budget=95)
        assert [block.text[0] for block in blocks] == ["a", "b"]
        assert sum(estimate(block.text) for block in blocks) <= 95
        left_out = [note for note in memory.notes if "does not fit" in note.what]
        assert [note.layer for note in left_out] == ["c"]


@pytest.mark.req("R122")
async def test_hooks_may_be_plain_functions_and_never_hold_up_the_loop(memory_url: str) -> None:
    layer = Blocking()
    async with Perdure(memory_url) as app, app.memory("plain", [layer]) as memory:
        assert await memory.prompt_blocks(budget=100) == [Block("user", "from a plain function")]
        await memory.after_turn()
        assert layer.threads == {"perdure-memory"}


@pytest.mark.req("R122", "R126")
async def test_a_layer_that_raises_is_noted_and_the_others_go_on(memory_url: str) -> None:
    class Raising(Said):
        async def recall(self, budget: int) -> str:
            raise KeyError("recall")

        async def store(self, turn: Any) -> None:
            raise ValueError("store")

        async def dispose(self) -> None:
            raise RuntimeError("dispose")

    good, bad = Said("good", 2), Raising("bad", 1)
    async with Perdure(memory_url) as app:
        async with app.memory("raising", [bad, good]) as memory:
            assert [block.text for block in await memory.prompt_blocks(budget=500)] == ["I am good."]
            await memory.after_turn(depth=3)
            assert ("store", 3) in good.calls
        assert [(note.layer, note.hook) for note in memory.notes] == [
            ("bad", "recall"),
            ("bad", "store"),
            ("bad", "dispose"),
        ]
        assert ("dispose",) in good.calls


class Hanging(Said):
    """Never comes back, by awaiting or by blocking."""

    def __init__(self, id: str, hook: str, is_blocking: bool) -> None:
        quickly = timedelta(milliseconds=20)
        limits = Timeouts(init=quickly, recall=quickly, store=quickly, spawn=quickly, complete=quickly)
        super().__init__(id, timeouts=limits)
        self.free = threading.Event()
        setattr(self, hook, self._block if is_blocking else self._wait)

    async def _wait(self, *args: Any) -> None:
        await asyncio.Event().wait()

    def _block(self, *args: Any) -> None:
        self.free.wait()


@pytest.mark.req("R122", "R126")
@pytest.mark.parametrize("is_blocking", [False, True])
@pytest.mark.parametrize("hook", ["init", "recall", "store", "on_complete", "dispose"])
async def test_a_layer_that_hangs_is_cut_off_at_its_limit(memory_url: str, hook: str, is_blocking: bool) -> None:
    layer, good = Hanging("hangs", hook, is_blocking), Said("good")
    try:
        async with Perdure(memory_url) as app:
            async with app.memory("hanging", [layer, good]) as memory:
                texts = [block.text for block in await memory.prompt_blocks(budget=500)]
                assert "I am good." in texts
                await memory.after_turn(depth=1)
                await memory.complete("failure")
            assert [call[0] for call in good.calls] == ["init", "recall", "store", "complete", "dispose"]
            assert {(note.layer, note.hook) for note in memory.notes} == {("hangs", hook)}
            assert "longer than 0.02 s" in memory.notes[0].what
    finally:
        layer.free.set()


@pytest.mark.req("R126")
async def test_store_hooks_run_side_by_side(memory_url: str) -> None:
    meeting = asyncio.Barrier(3)

    class Meeting(Said):
        async def store(self, turn: Any) -> None:
            await meeting.wait()  # nobody gets past unless all are there
            self.calls.append("met")

    layers = [Meeting(name) for name in "abc"]
    async with Perdure(memory_url) as app, app.memory("meeting", layers) as memory:
        await memory.after_turn()
        assert all("met" in layer.calls for layer in layers)


@pytest.mark.req("R126", "R55")
async def test_when_one_layer_says_to_stop_the_others_have_ended_first(memory_url: str) -> None:
    class Stopping(Said):
        async def store(self, turn: Any) -> None:
            raise LeaseLost("task", "another attempt has taken over")

    class Slower(Said):
        async def store(self, turn: Any) -> None:
            for _ in range(10):
                await asyncio.sleep(0)
            self.calls.append("ended")

    stops, slower = Stopping("stops"), Slower("slower")
    async with Perdure(memory_url) as app, app.memory("stop", [stops, slower]) as memory:
        with pytest.raises(LeaseLost):
            await memory.after_turn()
        assert slower.calls[-1] == "ended"


@pytest.mark.req("R129")
async def test_a_layer_that_says_too_much_is_cut_and_keeps_its_tag(memory_url: str) -> None:
    long = "<notes>\n" + "one more line of notes\n" * 500 + "</notes>"
    layer = Said("long", text=long, budget=Budget(10, 60))
    async with Perdure(memory_url) as app, app.memory("long", [layer]) as memory:
        (block,) = await memory.prompt_blocks(budget=1_000)
        assert estimate(block.text) <= 60
        assert block.text.startswith("<notes>") and block.text.endswith("</notes>")
        assert "it was cut" in memory.notes[0].what


@pytest.mark.req("R129")
async def test_another_count_of_tokens_is_kept_to(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("count", [DurableTaskState()], count=len) as memory:
        await memory.layer("task_state").set_data({"text": "word " * 1_000})
        (block,) = await memory.prompt_blocks(budget=300)
        assert len(block.text) <= 300


@pytest.mark.req("R122")
@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (Said(""), "needs an id"),
        (Said("x", "first"), "whole number"),
        (type("Odd", (Said,), {"scope": "universe"})("x"), "universe"),
        (Said("x", budget="much"), "budget"),
        (Said("x", timeouts=5), "time-outs"),
        (type("Thread", (Said,), {"scope": "thread"})("x"), "not told which"),
    ],
)
async def test_what_is_no_layer_is_refused_at_once(memory_url: str, wrong: Any, sentence: str) -> None:
    async with Perdure(memory_url) as app:
        with pytest.raises(InvalidInput, match=sentence):
            app.memory("wrong", [wrong])
        with pytest.raises(InvalidInput, match="two layers"):
            app.memory("wrong", [Said("same"), Said("same")])
    with pytest.raises(InvalidInput):
        Budget(10, 5)


@pytest.mark.req("R122")
async def test_a_custom_layer_passes_the_kit(url: str) -> None:
    class Visits:
        """Counts turns, for ever."""

        id, slot, scope = "visits", 42, "resource"
        visits = 0

        async def init(self, context: Any) -> None:
            self.storage = context.storage
            self.visits = await self.storage.get("visits") or 0

        async def recall(self, budget: int) -> str | None:
            return f"{self.visits} visits" if budget > 5 else None

        async def store(self, turn: Any) -> None:
            self.visits += 1
            await self.storage.set("visits", self.visits)

    assert isinstance(Visits(), Layer)
    async with Perdure(url) as app:
        await kit.check_layer(app, Visits)
        for make in (DurableTaskState, PlanLayer, ContinuityLayer):
            await kit.check_layer(app, make, task_id=f"kit-{make.__name__}")


@pytest.mark.req("R122")
async def test_the_kit_finds_a_layer_that_is_wrong(memory_url: str) -> None:
    async with Perdure(memory_url) as app:
        with pytest.raises(AssertionError, match="no hook fails"):
            await kit.check_layer(app, lambda: Said("long", text="word " * 400, budget=Budget(1, 20)))
        numbers = iter("abc")
        with pytest.raises(AssertionError, match="told the same"):
            await kit.check_layer(app, lambda: Said("other", text=next(numbers)))
