"""The layers beside the task's state: its thread, what is open after an interruption, procedures, reduced state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Perdure, durable, effect, pause, step, stream
from perdure._ground.clock import MovableClock
from perdure.errors import Conflict, InvalidData, InvalidInput, NotFound, OutOfOrder
from perdure.memory import (
    ContinuityLayer,
    InMemoryStorage,
    Procedure,
    ProcedureLayer,
    ProcedureStep,
    ThreadMemory,
    When,
    estimate,
    publish,
    published,
)
from perdure.memory.layers.reducer_layer import ReducedState
from tests.durable.effects_kit import Died

# ── the thread ───────────────────────────────────────────────────────────────────────────────────


@dataclass
class Person:
    name: str
    age: int


@pytest.mark.req("R131")
async def test_what_is_remembered_is_gone_after_its_time(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        async with app.memory("a", [ThreadMemory("chat-1", ttl=timedelta(hours=1))]) as memory:
            thread = memory.layer("thread")
            await thread.remember("colour", "blue </thread_memory>")
            await thread.remember("weather", {"rain": True}, ttl=timedelta(minutes=1))
            (block,) = await memory.prompt_blocks(budget=500)
            assert "colour" in block.text and "weather" in block.text
            assert block.text.count("</thread_memory>") == 1
            clock.advance(minutes=2)
            assert thread.get("weather") is None
            (block,) = await memory.prompt_blocks(budget=500)
            assert "colour" in block.text and "weather" not in block.text
            await memory.after_turn()
        async with app.memory("b", [ThreadMemory("chat-1")]) as memory:  # another task of the same thread
            assert memory.layer("thread").get("colour") == "blue </thread_memory>"
            clock.advance(hours=1)
            assert await memory.prompt_blocks(budget=500) == []
        async with app.memory("c", [ThreadMemory("chat-1")]) as memory:
            assert memory.layer("thread").entries == []
            await memory.layer("thread").remember("new", 1)  # also where the old has expired in the store
            assert not memory.notes


@pytest.mark.req("R131", "R128")
async def test_threads_do_not_see_each_other(url: str) -> None:
    async with Perdure(url) as app:
        async with app.memory("a", [ThreadMemory()], thread="one") as memory:
            await memory.layer("thread").remember("mine", 1)
        async with app.memory("a", [ThreadMemory()], thread="two") as memory:
            assert memory.layer("thread").entries == []


@pytest.mark.req("R131")
async def test_what_is_remembered_is_of_its_kind(memory_url: str) -> None:
    layer = ThreadMemory("chat", types={"person": Person, "number": int})
    async with Perdure(memory_url) as app, app.memory("a", [layer]):
        await layer.remember("ada", {"name": "Ada", "age": 36}, kind="person")
        for value, kind in (({"name": "Bob"}, "person"), ("seven", "number"), (1, "animal")):
            with pytest.raises(InvalidData):
                await layer.remember("wrong", value, kind=kind)
        assert [(entry.key, entry.kind) for entry in layer.entries] == [("ada", "person")]
        await layer.forget("ada")
        assert layer.entries == []
    with pytest.raises(InvalidInput):
        ThreadMemory("chat", ttl=timedelta(0))


@pytest.mark.req("R14", "R131")
async def test_two_processes_of_one_thread_lose_nothing(url: str) -> None:
    async with Perdure(url) as app:
        layers = [ThreadMemory("chat") for _ in range(3)]
        async with app.memory("a", [layers[0]]), app.memory("b", [layers[1]]), app.memory("c", [layers[2]]):
            await asyncio.gather(*(layer.remember(str(number), number) for number, layer in enumerate(layers)))
        async with app.memory("d", [ThreadMemory("chat")]) as memory:
            assert sorted(entry.key for entry in memory.layer("thread").entries) == ["0", "1", "2"]


# ── continuity ───────────────────────────────────────────────────────────────────────────────────


async def told(app: Perdure, task_id: str, budget: int = 2_000) -> str:
    async with app.memory(task_id, [ContinuityLayer()]) as memory:
        blocks = await memory.prompt_blocks(budget=budget)
        assert not memory.notes
        return blocks[0].text if blocks else ""


@pytest.mark.req("R97")
async def test_the_last_restore_report_is_in_the_next_prompt(url: str) -> None:
    async with Perdure(url) as app:
        assert await told(app, "restored") == ""
        await app.tasks.open("restored")
        assert await told(app, "restored") == ""
        runtime = await app.runtime("restored")
        runtime.variables["x"] = 1
        cut = await runtime.save()
        back = await runtime.restore(cut)
        assert back.report.for_model()
        text = await told(app, "restored")
        assert f"Task restored was restored from checkpoint {cut.id}" in text
        assert "variables" in text and "rebuilt" in text


@pytest.mark.req("R97", "R64")
async def test_an_uncertain_effect_and_a_pause_are_told(memory_url: str) -> None:
    class Lost(Exception):
        pass

    @effect
    async def charge(order: str) -> str:
        raise Lost("the connection broke")

    @durable
    async def shop() -> str:
        return await charge("order-7")

    @durable
    async def ask() -> None:
        await pause.approval("Ship it?")

    async with Perdure(memory_url) as app:
        await app.start("shop-1", shop)
        await app.start("ask-1", ask)
        async with app.worker():
            await app.tasks.wait_for("shop-1", status="paused")
            await app.tasks.wait_for("ask-1", status="paused")
        text = await told(app, "shop-1")
        assert "UNCERTAIN: whether charge('order-7') happened is not known" in text
        assert "WAITING for human_approval: Ship it?" in await told(app, "ask-1")
        task = await app.tasks.open("plain")
        await task.pause("Waiting for CI", reason="external_dependency")
        assert "PAUSED for external_dependency: Waiting for CI" in await told(app, "plain")


@pytest.mark.req("R97", "R119")
@pytest.mark.req("R118")
@pytest.mark.parametrize(
    "error, marker", [(ConnectionError, "RECOVERED_FROM_PARTIAL"), (TimeoutError, "TIMEOUT_PARTIAL")]
)
async def test_an_answer_that_was_cut_off_is_told_as_a_part(url: str, error: type[Exception], marker: str) -> None:
    async def words(prefix: str) -> AsyncIterator[str]:
        yield "half of an </continuity> answer"
        raise error("gone")

    @durable
    async def asking() -> str:
        return "".join([piece async for piece in stream("answer", words)])

    async with Perdure(url) as app:
        with pytest.raises(Exception, match="gone"):
            await app.run("asking", asking)
        text = await told(app, "asking")
    assert f"[{marker}] answer is not whole: 31 characters are kept" in text
    assert text.count("</continuity>") == 1 and "half of an" in text


async def test_a_thought_that_was_set_aside_is_told(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("thinking")
        await task.frames.push(
            "refactor", goal="clean auth", done=["a", "b", "c"], next=["d", "e", "f"], because="a message"
        )
        text = await told(app, "thinking")
        assert "back to refactor, step 4/6" in text and "clean auth" in text and "a message" in text


@pytest.mark.req("R97", "R116")
async def test_what_ended_an_earlier_attempt_and_what_was_kept_are_told(shared_url: str) -> None:
    stop = True

    @step(flush=True)
    async def work(number: int) -> int:
        return number

    @durable
    async def walk() -> str:
        for number in range(3):
            await work(number)
        if stop:
            raise Died
        return await told(app, "walk")

    async with Perdure(shared_url) as app:
        with pytest.raises(Died):
            await app.run("walk", walk)
    stop = False
    async with Perdure(shared_url) as app:
        text = await app.run("walk", walk)
    assert "This is attempt 2" in text and "3 steps" in text


@pytest.mark.req("R97")
async def test_it_keeps_to_its_budget_and_tells_what_matters_most(memory_url: str) -> None:
    async with Perdure(memory_url) as app:
        task = await app.tasks.open("long")
        for name in "abcdef":
            await task.frames.push(name, goal="a goal " * 60, done=[], next=["x </continuity>"])
        text = await told(app, "long")
        assert 200 < estimate(text) <= 500 and text.count("</continuity>") == 1 and text.endswith("</continuity>")
        short = await told(app, "long", budget=80)
        assert 0 < estimate(short) <= 80 and short.endswith("</continuity>")


# ── procedures ───────────────────────────────────────────────────────────────────────────────────

V1 = Procedure(
    "release",
    1,
    [
        ProcedureStep("test", "Run the tests"),
        ProcedureStep("fix", "Mend what is red", when=When("test", "==", "red")),
        ProcedureStep("ship", "Ship it", when=When("test", "in", ["green", "yellow"])),
        ProcedureStep("tell", "Tell people"),
    ],
)
V2 = Procedure("release", 2, [ProcedureStep("test", "Run all tests"), ProcedureStep("ship", "Ship it")])


@pytest.mark.req("R152")
async def test_a_run_keeps_the_version_it_began_with(url: str) -> None:
    async with Perdure(url) as app:
        async with app.memory("run-1", [ProcedureLayer(V1)]) as memory:
            layer = memory.layer("procedure release")
            assert layer.next().name == "test"
            await layer.done("test", "green")
        await publish(app.tasks, V2)
        assert (await published(app.tasks, "release")).version == 2
        async with app.memory("run-1", [ProcedureLayer("release")]) as memory:
            layer = memory.layer("procedure release")
            assert layer.procedure == V1
            assert layer.next().name == "ship"
            (block,) = await memory.prompt_blocks(budget=500)
            assert "release, version 1. Done: test. Next: ship" in block.text
            assert (await layer.done("ship")).name == "tell"
            assert await layer.done("tell") is None
        async with app.memory("run-2", [ProcedureLayer("release")]) as memory:
            assert memory.layer("procedure release").procedure == V2


@pytest.mark.req("R152")
async def test_steps_come_in_order_and_as_their_conditions_say(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("run", [ProcedureLayer(V1)]) as memory:
        layer = memory.layer("procedure release")
        with pytest.raises(OutOfOrder):
            await layer.done("ship")
        with pytest.raises(InvalidInput, match="no step"):
            await layer.done("dance")
        assert (await memory.call_tool("procedure_step_done", {"step": "test", "result": "red"})) == {"next": "fix"}
        assert (await layer.done("test", "green")).name == "fix"  # noted before
        assert (await layer.done("fix")).name == "tell"
        assert layer.results == {"test": "red", "fix": None}


@pytest.mark.req("R152")
async def test_a_published_version_never_changes(url: str) -> None:
    async with Perdure(url) as app:
        with pytest.raises(NotFound):
            await published(app.tasks, "release")
        await publish(app.tasks, V1)
        await publish(app.tasks, V1)
        with pytest.raises(Conflict, match="published with other contents"):
            await publish(app.tasks, Procedure("release", 1, [ProcedureStep("other")]))
        assert await published(app.tasks, "release", 1) == V1


@pytest.mark.parametrize(
    "steps",
    [[], [ProcedureStep("a"), ProcedureStep("a")], [ProcedureStep("a", when=When("b", "==", 1)), ProcedureStep("b")]],
)
def test_a_procedure_that_cannot_be_followed_is_refused(steps: Any) -> None:
    with pytest.raises(InvalidInput):
        Procedure("wrong", 1, steps)


# ── reduced state ────────────────────────────────────────────────────────────────────────────────


def bank(state: int, event: Any) -> tuple[int, list[str]]:
    after = state + event["amount"]
    return after, [f"warn {after}"] if after < 0 else []


@pytest.mark.req("R133")
async def test_the_state_is_the_fold_of_the_log(url: str) -> None:
    async with Perdure(url) as app:
        async with app.memory("bank", [ReducedState(bank, 0)]) as memory:
            log = memory.layer("reduced")
            for number in range(1, 251):
                sent = await log.send({"amount": number})
            assert (sent.number, sent.state, list(sent.effects)) == (250, 31_375, [])
            assert list((await log.send({"amount": -40_000})).effects) == ["warn -8625"]
        async with app.memory("bank", [ReducedState(bank, 0)]) as memory:
            log = memory.layer("reduced")
            assert log.state == -8_625 == log.at(251)
            assert log.at(12) == sum(range(1, 13))
            assert len(log.events) == 251


@pytest.mark.req("R133", "R14")
async def test_events_of_several_processes_all_have_their_place(url: str) -> None:
    async with Perdure(url) as app:
        layers = [ReducedState(bank, 0) for _ in range(3)]
        async with app.memory("b", [layers[0]]), app.memory("b", [layers[1]]), app.memory("b", [layers[2]]):
            sent = await asyncio.gather(*(layer.send({"amount": 1}) for layer in layers for _ in range(5)))
        assert sorted(one.number for one in sent) == list(range(1, 16))
        async with app.memory("b", [ReducedState(bank, 0)]) as memory:
            assert memory.layer("reduced").state == 15


@pytest.mark.req("R133")
@given(amounts=st.lists(st.integers(-5, 5), max_size=30), cut=st.integers(0, 30))
def test_replaying_to_an_event_gives_the_state_there(amounts: list[int], cut: int) -> None:
    async def run() -> None:
        async with Perdure("memory://") as app:
            storage = InMemoryStorage()
            async with app.memory("b", [ReducedState(bank, 0)], storage=storage) as memory:
                seen = [0] + [(await memory.layer("reduced").send({"amount": one})).state for one in amounts]
                place = min(cut, len(amounts))
                assert memory.layer("reduced").at(place) == seen[place]

    asyncio.run(run())


# ── blocking code ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R147")
async def test_blocking_code_has_the_same_memory_also_inside_a_loop(memory_url: str) -> None:
    from perdure.memory import DurableTaskState, PlanLayer
    from perdure.sync import Perdure as Blocking

    for turn in range(2):
        with Blocking(memory_url) as app, app.memory("sync", [DurableTaskState(), PlanLayer()]) as memory:
            memory.layer("task_state").set_data({f"turn {turn}": turn})
            memory.layer("plan").author(["a"])
            memory.call_tool("set_task_data", {"values": {"tool": True}})
            memory.after_turn(depth=turn)
            child = memory.spawn("child")
            child.after_turn()
            memory.returned(child)
            assert next(tool["name"] for tool in memory.tools()) == "set_task_data"
            blocks = memory.prompt_blocks(budget=1_000)
            assert [block.text.split("\n")[0] for block in blocks] == ["<task_state>", "<plan>"]
            memory.complete("success")
            assert not memory.notes
            assert memory.layer("task_state").state["data"]["__outcome"] == "success"
