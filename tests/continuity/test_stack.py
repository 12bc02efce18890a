"""Where a task stands is told with its calls, their arguments and what came back; and what then happens."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perdure import Perdure, durable, effect, step
from perdure._durable import CallFrame, Where, where
from perdure._durable.attempt.call_stack import _line as call_line
from perdure._model import Situation
from perdure._runtime import plan_for
from perdure._runtime.restore.restore_plan import _cut_off, _then
from perdure._runtime.restore.save import call_stack
from tests.support.processes import Link, nursery, say

TOKEN = "ghp_" + "a1B2" * 9
_link: list[Link] = []


@step
async def look_up(name: str) -> dict[str, str]:
    return {"name": name, "token": TOKEN, "text": "x" * 1000}


@effect
async def charge(cents: int) -> str:
    say(_link[0], "in the effect")
    await asyncio.Event().wait()
    return "receipt"


@durable(name="billing in a stack")
async def billing(order: str) -> str:
    await look_up("ada")
    return await charge(500)


async def bill(link: Link, url: str) -> None:
    _link.append(link)
    async with Perdure(url) as app:
        await app.run("order-1", billing, "seven")


@pytest.mark.req("R84", "R96")
async def test_after_a_kill_the_stack_and_the_plan_say_where_it_stands_and_what_then_happens(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    with nursery() as children:
        child = children.start(bill, url)
        assert child.heard() == "in the effect"
        child.kill()
    async with Perdure(url) as app:
        found = await where(app.tasks, "order-1")
        (returned,) = found.returned
        assert returned.startswith("look_up#1 -> {'name': 'ada'") and len(returned) < 200
        task = await app.tasks.handle("order-1")
        function, frame = await call_stack(task)
        assert (function["function"], function["arguments"]) == ("billing in a stack", {"order": "seven"})
        assert function["results"] == [returned]
        assert (frame["path"], frame["call"], frame["state"]) == ("charge#1", "charge(500)", "uncertain")
        assert TOKEN not in f"{found.returned}{function}{frame}"
        plan = await plan_for(task)
        assert plan.then[0].startswith("charge(500) is uncertain: whether it happened is settled first")
        assert plan.then[1] == "billing in a stack goes on after look_up#1"
        assert plan.skipped == 1


def stands(*frames: CallFrame) -> Where:
    told = {"id": "t", "status": "running", "function": "f", "arguments": {}, "done": 0, "last": ""}
    situation = Situation(kind="working", cause="at_work", say="")
    return Where(**told, last_at=datetime.now(UTC), frames=frames, situation=situation)  # type: ignore[arg-type]


def test_the_line_of_a_comprehension_has_no_argument_of_its_own() -> None:
    comprehension = (page for page in range(3))
    assert "range" not in call_line(comprehension.gi_frame).partition(" at ")[0]


def test_what_was_cut_off_runs_again_and_the_plan_stays_short() -> None:
    cut = [CallFrame(name="copy", scope="", path=f"copy#{n}", call=f"copy({n})", state="cut off") for n in range(300)]
    assert _cut_off(stands(cut[0])) == ["copy"]
    assert _then(stands(cut[0])) == ["copy(0) was cut off, and runs again", "f goes on from its beginning"]
    assert len(_then(stands(*cut))) < 30 and "and 280 calls more" in _then(stands(*cut))
