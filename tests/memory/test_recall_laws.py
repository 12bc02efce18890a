"""Laws of what a model is told: whatever a task holds, it parses, fits its budget and stays in its tags."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import Perdure
from perdure.errors import NotStorable
from perdure.memory import (
    ContinuityLayer,
    DurableTaskState,
    PlanLayer,
    Procedure,
    ProcedureLayer,
    ProcedureStep,
    ThreadMemory,
    estimate,
)
from perdure.memory.prompt.recall import parse, render
from perdure.memory.task_state_events import MOST_DEPTH

CLOSING = "</task_state>"


def nested(depth: int, kind: str) -> Any:
    value: Any = CLOSING
    for _ in range(depth):
        value = [value] if kind == "list" else {"</k>": value}
    return value


# What is too large for strategies to draw, made once.
HUGE: dict[str, Any] = {
    "five megabytes": "x" * 5_000_000,
    "closing tags": CLOSING * 400_000,
    "quotes": '"' * 300_000,
    "backslashes": "\\" * 300_000,
    "emoji": "👩🏽‍💻" * 50_000,
    "control characters": "\x00\x1f\u2028" * 50_000,
    "many keys": {f"key {number}": number for number in range(100_000)},
    "many items": list(range(300_000)),
    "long lists in a list": [["y" * 1_000] * 100] * 50,
    "a number": 10**4_000,
    "deep lists": nested(MOST_DEPTH, "list"),
    "deep mappings": nested(MOST_DEPTH, "mapping"),
    "deeper than is taken": nested(900, "list"),
}
huge_states = st.fixed_dictionaries(
    {
        "checkpoints": st.sampled_from([0, 1, 10_000]).map(
            lambda number: [{"timestamp": "2030-01-01T00:00:00.000Z", "depth": 3}] * number
        ),
        "files": st.sampled_from(
            [[], ["</files>"], [f"src/module_{number}.py" for number in range(5_000)], ["f" * 10_000]]
        ),
        "data": st.lists(st.sampled_from(sorted(HUGE)), max_size=3, unique=True).flatmap(
            lambda names: st.sampled_from(["", "k" * 100_000, CLOSING]).map(
                lambda prefix: {prefix + name: HUGE[name] for name in names}
            )
        ),
    }
)
budgets = st.sampled_from([0, 1, 7, 20, 29, 30, 31, 40, 60]) | st.integers(0, 900)
counters = st.sampled_from([estimate, len, lambda text: len(text.encode()) // 3 + 1])


@pytest.mark.req("R125")
@settings(max_examples=40)
@given(state=huge_states, budget=budgets, count=counters)
def test_recall_of_anything_huge_parses_and_keeps_to_its_budget(state: dict[str, Any], budget: int, count: Any) -> None:
    text = render(state, budget, count)
    if text is None:
        assert budget < count("<task_state>\n" + "{" * 60 + "}" * 60 + "\n</task_state>") + 80
        return
    assert count(text) <= budget
    assert text.count("<") == 2 and text.endswith(f"\n{CLOSING}")
    found = parse(text)
    missing = found.get("left_out", {})
    assert len(found["checkpoints"]) + missing.get("checkpoints", 0) == len(state["checkpoints"])
    assert len(found["files"]) + missing.get("files", 0) == len(state["files"])
    assert len(found["data"]) + missing.get("data", 0) == len(state["data"])


@pytest.mark.req("R125")
@pytest.mark.parametrize("kind", ["list", "mapping"])
def test_what_another_program_nested_deeper_than_python_goes_is_shortened(kind: str) -> None:
    text = render({"checkpoints": [], "files": [], "data": {"before": 1, "deep": nested(900, kind)}}, 800, estimate)
    assert text is not None and parse(text)["data"]["before"] == 1


@pytest.mark.req("R125")
@pytest.mark.parametrize("value", [nested(MOST_DEPTH + 1, "list"), nested(900, "mapping")])
async def test_what_is_nested_too_deep_is_refused_and_the_state_is_as_it_was(memory_url: str, value: Any) -> None:
    async with Perdure(memory_url) as app, app.memory("deep", [DurableTaskState()]) as memory:
        await memory.layer("task_state").set_data({"before": 1})
        with pytest.raises(NotStorable, match="nested"):
            await memory.layer("task_state").set_data({"value": value})
        await memory.layer("task_state").set_data({"value": nested(MOST_DEPTH, "list")})
        (block,) = await memory.prompt_blocks(budget=800)
        assert parse(block.text)["data"]["before"] == 1 and not memory.notes


# ── all layers together ──────────────────────────────────────────────────────────────────────────

texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40) | st.sampled_from(
    [
        CLOSING,
        "</plan>\n<task_state>",
        "</thread_memory>",
        "</procedure>",
        "<system>",
        "</continuity>",
        "é😀" * 20,
        "x" * 900,
    ]
)
_numbers = itertools.count()


@pytest.mark.req("R125", "R129")
@settings(max_examples=30, deadline=None)
@given(plan=st.lists(texts, min_size=1, max_size=20), facts=st.dictionaries(texts, texts, max_size=6), budget=budgets)
def test_all_layers_together_keep_to_the_budget_and_to_their_tags(
    plan: list[str], facts: dict[str, str], budget: int
) -> None:
    async def told() -> list[str]:
        layers = [ContinuityLayer(), DurableTaskState(), PlanLayer(), ThreadMemory("t")]
        steps = [ProcedureStep(f"{place} {text}", text) for place, text in enumerate(plan)]
        layers.append(ProcedureLayer(Procedure("</procedure>", 1, steps)))
        async with Perdure(f"memory://laws-{next(_numbers)}") as app, app.memory("all", layers) as memory:
            task = await app.tasks.open("all")
            await task.pause(plan[0], reason="checkpoint")
            await memory.layer("plan").author([f"{place} {text}" for place, text in enumerate(plan)])
            for key, value in facts.items():
                if not key.startswith("__"):
                    await memory.layer("task_state").set_data({key: value})
                    await memory.layer("thread").remember(key, value)
            blocks = await memory.prompt_blocks(budget=budget)
            assert all(note.hook == "budget" for note in memory.notes), memory.notes
            return [block.text for block in blocks]

    blocks = asyncio.run(told())
    assert sum(estimate(text) for text in blocks) <= budget
    for text in blocks:
        tag = re.match(r"<(\w+)>\n", text)
        assert tag is not None and text.endswith(f"\n</{tag[1]}>")
        assert text.count("<") == 2, "nothing inside opens or closes a tag"
        if tag[1] == "task_state":
            assert isinstance(parse(text)["data"], dict)
