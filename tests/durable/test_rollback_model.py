"""Random rollbacks to any checkpoint, those that earlier ones left behind too, against a count of what was done.

Each page is published by an effect. It may be published twice only if it was taken back in between, or if a rollback
listed it and was told to leave it; and at the end each page is out. A rollback to before a `carry_over` is refused.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from perdure import Perdure, carry_over, checkpoint, durable, effect, pause, step
from perdure.errors import InvalidInput
from perdure.types import Checkpoint, Task
from tests.durable.effects_kit import until_paused

PAGES = 4
out: Counter[int] = Counter()  # how often each page is out now
excused: Counter[int] = Counter()  # how often more than once, because a rollback was told so
round_of: dict[str, int] = {}  # the first page of the present round


@step
async def write(page: int) -> int:
    return page


def retract(result: int, page: int) -> None:
    out[page] -= 1


@effect(undo=retract)
async def publish(page: int) -> int:
    out[page] += 1
    assert out[page] <= 1 + excused[page], f"page {page} is published again"
    return page


@durable(name="rollback model: from its start")
async def from_its_start(pages: int) -> int:
    for page in range(pages):
        await publish(await write(page))
        await checkpoint.save({"page": page + 1})
        await pause.input(f"page {page} is out", bool)
    return pages


@durable(name="rollback model: from its last state")
async def from_its_last_state(pages: int) -> int:
    state = await checkpoint.last({"page": 0})
    while state["page"] < pages:
        await publish(await write(state["page"]))
        await pause.input(f"page {state['page']} is out", bool)
        state = {"page": state["page"] + 1}
        await checkpoint.save(state)
    return pages


@durable(name="rollback model: two pages in a round")
async def in_rounds(pages: int, first: int = 0) -> int:
    round_of["job"] = first
    state = await checkpoint.last({"page": first})
    while state["page"] < min(first + 2, pages):
        await publish(await write(state["page"]))
        await pause.input(f"page {state['page']} is out", bool)
        state = {"page": state["page"] + 1}
        await checkpoint.save(state)
    if state["page"] < pages:
        await carry_over(pages, state["page"])
    return pages


@pytest.mark.req("R18", "R27", "R70")
@pytest.mark.parametrize("function", [from_its_start, from_its_last_state, in_rounds])
@pytest.mark.parametrize("seed", range(6))
async def test_nothing_is_done_twice_unasked_and_nothing_is_missing(
    quick_url: str, function: object, seed: int
) -> None:
    rng = random.Random(seed)
    out.clear()
    excused.clear()
    round_of.clear()
    async with Perdure(quick_url) as app:
        for _ in range(12):
            await until_paused(app, "job", function, PAGES)
            task = await app.tasks.handle("job")
            made = [one async for one in task.checkpoints()]
            if (await task.record()).status == "paused" and made and rng.random() < 0.6:
                await go_back(task, rng.choice(made), rng)
            elif (await task.record()).status == "paused":
                await task.answer(True)
        while (await until_paused(app, "job", function, PAGES)) != PAGES:
            await task.answer(True)
    assert all(out[page] >= 1 for page in range(PAGES)), out


def is_from_an_earlier_round(made: Checkpoint) -> bool:
    """True if other arguments were given since. The state that the present round began with is not."""
    page, first = made.data["page"], round_of.get("job", 0)
    return page < first or (page == first > 0 and made.superseded)


async def go_back(task: Task, made: Checkpoint, rng: random.Random) -> None:
    undo, to = rng.choice([None, True, False]), str(made.seq)
    before = Counter(out)
    if is_from_an_earlier_round(made):
        version = (await task.record()).version
        for asked in ({"dry_run": True}, {"undo": undo}):
            with pytest.raises(InvalidInput, match="began with new arguments"):
                await task.rollback(to, **asked)
        assert ((await task.record()).version, out) == (version, before)
        return
    found = await task.rollback(to, dry_run=True)
    assert found is not None and not found.uncertain
    listed = [int(one.call.removeprefix("publish(").removesuffix(")")) for one in found.kept]
    if undo is None and listed:
        with pytest.raises(InvalidInput, match="since checkpoint"):
            await task.rollback(to)
        return
    if undo is False:
        excused.update(listed)
    await task.rollback(to, undo=undo)
    if undo:
        assert before - out == Counter(listed)
