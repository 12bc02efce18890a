"""The plan: written early, ticked in order, and what is left put before the model again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Perdure, durable, step
from perdure.errors import Conflict, InvalidInput, OutOfOrder
from perdure.memory import AppStorage, DurableTaskState, Item, PlanLayer
from perdure.memory.layers.plan import parse, take_over, tick, written
from tests.durable.effects_kit import Died

NINE = [f"step {number}" for number in range(1, 10)]


@pytest.mark.req("R132")
async def test_what_is_left_is_put_before_the_model(url: str) -> None:
    async with Perdure(url) as app, app.memory("plan", [PlanLayer()]) as memory:
        assert await memory.prompt_blocks(budget=1_000) == []
        plan = memory.layer("plan")
        await plan.author(NINE)
        for number in (1, 2, 3, 4):
            await plan.tick(number)
        (block,) = await memory.prompt_blocks(budget=1_000)
        assert block.text.splitlines()[1] == "4 of 9 done. Left, in this order:"
        assert block.text.splitlines()[2:-1] == [f"{n}. step {n}" for n in range(5, 10)]
        for number in (5, 6, 7, 8, 9):
            await plan.tick(number)
        (block,) = await memory.prompt_blocks(budget=1_000)
        assert block.text == "<plan>\n9 of 9 done. Nothing is left.\n</plan>"


KILLED = """
import asyncio, os, signal, sys
from perdure import Perdure
from perdure.memory import PlanLayer

async def main():
    async with Perdure(sys.argv[1]) as app, app.memory("plan", [PlanLayer(folder=sys.argv[2])]) as memory:
        plan = memory.layer("plan")
        await plan.author([f"step {number}" for number in range(1, 10)])
        for number in range(1, 10):
            if number == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            await plan.tick(number)

asyncio.run(main())
"""


@pytest.mark.req("R132")
async def test_killed_at_four_of_nine_the_next_prompt_shows_five_left(shared_url: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, shared_url, str(tmp_path / "work")]
    died = subprocess.run(command, capture_output=True, check=False)
    assert died.returncode == -9, died.stderr
    (tmp_path / "work" / "plan.md").write_text("# Pl")  # and the file was cut off
    async with Perdure(shared_url) as app, app.memory("plan", [PlanLayer(folder=tmp_path / "work")]) as memory:
        (block,) = await memory.prompt_blocks(budget=1_000)
        assert block.text.count("\n") == 2 + 5 and "4 of 9 done" in block.text
        await memory.layer("plan").author(NINE)  # the same again is no error
        assert (tmp_path / "work" / "plan.md").read_text().count("[x]") == 4


@pytest.mark.req("R132")
async def test_nobody_passes_an_open_item_without_it_being_on_record(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("plan", [PlanLayer()]) as memory:
        plan = memory.layer("plan")
        await plan.author(["read", "write", "review"])
        with pytest.raises(OutOfOrder) as caught:
            await plan.tick("write")
        assert (caught.value.item, caught.value.waiting) == ("write", "read")
        assert not any(item.is_done for item in plan.items)
        await plan.tick("write", why_now="the reader is away")
        assert plan.items[1].note == "before 1 open: the reader is away"
        await plan.tick(2)  # ticked before: nothing happens
        assert plan.items[1].note == "before 1 open: the reader is away"


@pytest.mark.req("R132")
async def test_an_item_is_ticked_when_what_it_is_bound_to_has_ended_well(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("plan", [PlanLayer()]) as memory:
        plan = memory.layer("plan")
        await plan.author(["fails", "works"])
        with pytest.raises(ZeroDivisionError):
            async with plan.doing("fails"):
                raise ZeroDivisionError
        assert [item.is_done for item in plan.items] == [False, False]
        async with plan.doing("fails"):
            pass
        async with plan.doing(2):
            pass
        assert [item.is_done for item in plan.items] == [True, True]


@pytest.mark.req("R132")
async def test_items_bound_to_steps_are_ticked_through_a_crash(shared_url: str) -> None:
    ran: list[str] = []
    stop = True

    @step(flush=True)
    async def work(item: str) -> str:
        ran.append(item)
        return item

    @durable
    async def by_the_plan() -> int:
        async with app.memory("by-the-plan", [PlanLayer()]) as memory:
            plan = memory.layer("plan")
            await plan.author(["one", "two", "three"])
            for item in ("one", "two", "three"):
                async with plan.doing(item):
                    await work(item)
                    if stop and item == "two":
                        raise Died
            return sum(item.is_done for item in plan.items)

    async with Perdure(shared_url) as app:
        with pytest.raises(Died):
            await app.run("by-the-plan", by_the_plan)
    stop = False
    async with Perdure(shared_url) as app:
        assert await app.run("by-the-plan", by_the_plan) == 3
    assert ran == ["one", "two", "three"]


@pytest.mark.req("R132")
async def test_what_is_done_in_the_file_is_taken_over(memory_url: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.md"
    layers = [DurableTaskState(base_dir=tmp_path), PlanLayer()]
    async with Perdure(memory_url) as app, app.memory("plan", layers) as memory:
        plan = memory.layer("plan")
        file.write_text("# My plan\n\nSome words.\n- [ ] read\n- [x] set up\n* [ ] write\n")
        await memory.prompt_blocks(budget=1_000)
        assert [(item.text, item.is_done) for item in plan.items] == [
            ("read", False),
            ("set up", True),
            ("write", False),
        ]
        file.write_text(file.read_text().replace("- [ ] write", "- [x] write") + "- [ ] publish\n")
        await memory.after_turn()
        assert plan.items[2].note == "added in the file" or "out of order" in plan.items[2].note
        assert [item.text for item in plan.items] == ["read", "set up", "write", "publish"]
        file.unlink()
        await memory.after_turn()
        assert parse(file.read_text())[0][0].startswith("read")


async def test_a_plan_is_not_replaced_but_by_revising_it(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("plan", [PlanLayer()]) as memory:
        plan = memory.layer("plan")
        await plan.author(["read", "write"])
        await plan.tick(1)
        with pytest.raises(Conflict, match="plan already"):
            await plan.author(["something else"])
        await plan.author(["rewrite", "review"], revise=True)
        assert [item.text for item in plan.items] == ["read", "rewrite", "review"]
        for wrong in ([], [""], ["x"] * 3_000):
            with pytest.raises(InvalidInput):
                await plan.author(wrong)
        for wrong_item in (0, 4, "nothing", True):
            with pytest.raises(InvalidInput):
                await plan.tick(wrong_item)


@pytest.mark.req("R130", "R132")
async def test_a_model_writes_and_ticks_its_plan_by_tools(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("plan", [PlanLayer()]) as memory:
        assert await memory.call_tool("write_plan", {"items": ["a </plan>", "b"]}) == {"left": 2}
        assert await memory.call_tool("tick_plan", {"item": 1, "note": "easy"}) == {"left": 1}
        (block,) = await memory.prompt_blocks(budget=1_000)
        assert block.text.count("</plan>") == 1


items = st.lists(st.text("abc é", min_size=1, max_size=6).map(str.strip).filter(bool), max_size=6, unique=True)


@given(texts=items, ticks=st.lists(st.integers(1, 6), max_size=6), cut=st.integers(0, 200))
def test_no_file_however_cut_off_makes_a_plan_shorter_or_unticks_it(texts: Any, ticks: Any, cut: int) -> None:
    plan = tuple(Item(text) for text in texts)
    for number in ticks:
        if number <= len(plan):
            plan = tick(plan, number, "now", why_now="because")
    after = take_over(plan, parse(written(plan)[:cut]), "later")
    assert [item.text for item in after[: len(plan)]] == texts
    assert all(now.is_done >= then.is_done for then, now in zip(plan, after, strict=False))
    assert take_over(plan, parse(written(plan)), "later") == plan


@pytest.mark.req("R132", "R95")
async def test_a_damaged_plan_is_set_aside_and_the_file_is_read(memory_url: str, tmp_path: Path) -> None:
    async with Perdure(memory_url) as app:
        async with app.memory("planned", [PlanLayer(folder=tmp_path)]) as memory:
            await memory.layer("plan").author(["one", "two", "three"])
            await memory.layer("plan").tick(1)
        storage = AppStorage(app._store)
        await storage.set("execution/planned/plan/plan", [{"text": 5}])
        async with app.memory("planned", [PlanLayer(folder=tmp_path)]) as memory:
            assert [(item.text, item.is_done) for item in memory.layer("plan").items] == [
                ("one", True),
                ("two", False),
                ("three", False),
            ]
            assert "damaged" in memory.notes[0].what
        assert await storage.get("execution/planned/plan/plan.damaged") == [{"text": 5}]
