"""Why is a task not running? Its situation knows, with real processes and both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, pause
from perdure.types import Situation
from tests.support.processes import Nursery
from tests.torture.kills import Home
from tests.worker.kit import opened, quick, three, until, work


@durable(name="situations: asking")
async def asking() -> bool:
    return bool(await pause.approval("Charge 42.00 EUR?", expires="2d"))


@durable(name="situations: sleeping")
async def sleeping() -> None:
    await pause.wait("1h")


@durable(name="situations: failing")
async def failing() -> None:
    raise ValueError("bad row 12")


async def is_now(app: Perdure, id: str, kind: str, cause: str) -> bool:
    found = await app.situation(id)
    return (found.kind, found.cause) == (kind, cause)


async def in_list(app: Perdure, id: str) -> Situation:
    page = await app.tasks.page(limit=100)
    found = await app.situations(page.items)
    return next(found[one.uid] for one in page.items if one.id == id)


@pytest.mark.req("R94")
async def test_a_killed_worker_leaves_a_task_that_says_so(home: Home, children: Nursery, tmp_path: Path) -> None:
    async with opened(home) as app:
        gate = tmp_path / "gate"
        await app.start("t", three, str(tmp_path / "notes"), str(gate))
        assert await is_now(app, "t", "stuck", "no_worker")
        worker = children.start(work, home)
        worker.heard()
        await until(lambda: is_now(app, "t", "working", "at_work"))
        await until(lambda: says(app, "t", "wait_for_file#1 for "))
        listed = await in_list(app, "t")
        assert listed.say.startswith("wait_for_file#1 for ") and listed.holder is not None
        assert (listed.holder.pid, listed.holder.state) == (worker.pid, "alive")
        worker.kill()
        for found in (await app.situation("t"), await in_list(app, "t")):
            assert (found.kind, found.cause) == ("stuck", "no_worker")
            assert found.holder is not None and found.holder.state == "dead"
            assert [way.cli for way in found.ways] == ["perdure worker module:app", "perdure cancel t"]
        told = await app.situation("t")
        assert "1 call on record, which will not run again. No process is held." in told.details


async def says(app: Perdure, id: str, words: str) -> bool:
    return (await app.situation(id)).say.startswith(words)


@pytest.mark.req("R94")
async def test_a_silent_holder_is_said_to_be_silent_and_then_its_task_is_free(
    home: Home, children: Nursery, tmp_path: Path
) -> None:
    async with opened(home) as app:
        await app.start("t", three, str(tmp_path / "notes"), str(tmp_path / "gate"))
        worker = children.start(work, home)
        worker.heard()
        await until(lambda: is_now(app, "t", "working", "at_work"))
        worker.stop()
        await until(lambda: is_now(app, "t", "starting", "silent"))
        found = await app.situation("t")
        assert found.by_itself and found.unattended is False
        await until(lambda: is_now(app, "t", "stuck", "no_worker"))
        worker.kill()


@pytest.mark.req("R94")
async def test_a_version_that_no_worker_knows_is_named_with_those_they_know(home: Home, children: Nursery) -> None:
    from perdure._durable.declare.versions import _known

    newer = durable(name="quick", version=2)(quick.function)
    try:
        worker = children.start(work, home)
        worker.heard()
        async with opened(home) as app:
            await app.start("newer", newer, 1)
            await until(lambda: is_now(app, "newer", "stuck", "code"))
            found = await app.situation("newer")
            assert found.headline == "Stuck: no live worker knows quick version 2; they know version 1"
            assert any(f"pid {worker.pid} on " in text for text in found.details)
            assert found.facts == {"function": "quick", "version": 2, "queue": "default"}
    finally:
        del _known["quick", 2]


async def test_questions_timers_ends_and_pauses_are_told_alike_alone_and_in_a_list(home: Home) -> None:
    async with opened(home) as app, app.worker():
        await app.run_until_paused("asks", asking)
        await app.run_until_paused("sleeps", sleeping)
        with pytest.raises(ValueError, match="bad row"):
            await app.run("fails", failing)
    async with opened(home) as app:
        plain = await app.tasks.open("plain", state={})
        await plain.checkpoint({"n": 1})
        await plain.pause("Which colour?", schema={"type": "string"})
        done = await app.tasks.open("done", state={})
        await done.complete({"receipt": 7})
        late = await app.tasks.create("late", state={}, depends_on=["plain"])
        assert late.status == "pending"
        stopped = await app.start("stopped", quick, 1)
        await (await app.tasks.handle(stopped.id)).pause("maintenance")
        off = await app.start("off", quick, 1)
        await app.kill_switch.on(off.id, why="costs run away")
        expected = {
            "asks": ("you", "question", "Charge 42.00 EUR?"),
            "sleeps": ("waiting", "pause", None),
            "fails": ("failed", "ended", "ValueError: bad row 12"),
            "plain": ("you", "question", "Which colour?"),
            "done": ("completed", "ended", "{'receipt': 7}"),
            "late": ("blocked", "dependencies", "waits for plain (paused)"),
            "stopped": ("stopped", "paused", None),
            "off": ("stopped", "switch", None),
        }
        for id, (kind, cause, say) in expected.items():
            for found in (await app.situation(id), await in_list(app, id)):
                assert (found.kind, found.cause) == (kind, cause), id
                assert say is None or found.say == say
        asks = await app.situation("asks")
        assert asks.you == 1 and asks.until is not None and [way.verb for way in asks.ways] == ["approve", "reject"]
        sleeps = await app.situation("sleeps")
        assert sleeps.unattended and sleeps.say.endswith("but no worker is there to notice")
        assert (await app.situation("off")).say.endswith(": costs run away")


async def test_a_page_of_situations_costs_as_many_queries_as_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(url) as app:
        for n in range(30):
            await app.start(f"q{n}", quick, n)
            task = await app.tasks.open(f"p{n}", state={})
            await task.pause("Ship it?", reason="human_approval")
        asked: list[str] = []
        engine: Any = app._store.engine
        query = engine.query
        monkeypatch.setattr(engine, "query", lambda name, params: asked.append(name) or query(name, params))
        one = (await app.tasks.page(limit=2)).items
        asked.clear()
        await app.situations(one)
        few = sorted(asked)
        many = (await app.tasks.page(limit=60)).items
        asked.clear()
        assert len(await app.situations(many)) == 60
        assert sorted(asked) == few and len(few) <= 9
