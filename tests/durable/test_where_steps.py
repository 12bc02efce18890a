"""`where` of a task whose process was killed: the step it was in, how far that was, and that nobody is at work."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, effect, progress, step
from perdure._durable import where
from perdure._durable.control import control_watch
from perdure._durable.control.control_watch import BEGUN, note_calls
from perdure._durable.journal.journal_reader import read_line
from perdure.cli import main
from tests.durable.effects_kit import wait_until
from tests.support.processes import Link, Nursery, say
from tests.torture.kills import Home


@step
async def copy(number: int, *, into: str) -> int:
    if number == 8:
        await progress.mark(done=4, total=10)
        await asyncio.Event().wait()
    return number


async def part(number: int) -> int:
    return await copy(number, into="b")


@durable(name="copying for ever")
async def copying(parts: int, is_nested: bool) -> int:
    for number in range(1, parts + 1):
        await (asyncio.create_task(part(number)) if is_nested else part(number))
    return parts


async def copy_for_ever(_: Link, home: Home, is_nested: bool) -> None:
    async with home.open() as app:
        await app.run("copy", copying, 10, is_nested)


@pytest.mark.req("R15", "R84", "R116")
@pytest.mark.parametrize("is_nested", [False, True])
async def test_a_step_that_was_killed_half_way_is_named_with_how_far_it_was(
    home: Home, children: Nursery, is_nested: bool
) -> None:
    child = children.start(copy_for_ever, home, is_nested)
    async with home.open() as app:
        await wait_until(lambda: is_under_way(app))
        child.kill()
        found = await where(app.tasks, "copy")
        (frame,) = found.frames
        path = "/part#8|copy#1" if is_nested else "copy#8"
        assert (frame.path, frame.call, frame.state) == (path, "copy(8, into='b')", "cut off")
        assert (found.done, found.last, found.operation, found.percent) == (7, "copy", "copy", 40)
        assert found.arguments == {"parts": 10, "is_nested": is_nested}
        assert found.holder == "" and f"pid {child.pid} " in found.dead


@step(flush=True)
async def quick() -> int:
    return 1


class Holding:
    """Says that it is in the middle of a call, and never comes back."""

    link: Link | None = None

    def on(self) -> None:
        assert self.link is not None
        say(self.link, "in it")
        self.link.recv()


holding = Holding()
begin = step(holding.on, name="begin")
act = effect(holding.on, name="act")


@durable(name="cut off in something")
async def cut_off_in(what: str) -> None:
    await quick()
    begin() if what == "step" else act()


async def be_cut_off(link: Link, home: Home, what: str) -> None:
    holding.link = link
    async with home.open() as app:
        await app.run("t", cut_off_in, what)


@pytest.mark.req("R15", "R116")
@pytest.mark.parametrize("what", ["step", "effect"])
async def test_where_says_what_is_not_known_of_a_step_that_had_just_begun(
    home: Home, children: Nursery, what: str
) -> None:
    child = children.start(be_cut_off, home, what)
    assert child.heard() == "in it"
    child.kill()
    async with home.open() as app:
        found = await where(app.tasks, "t")
    if what == "effect":
        assert (found.uncertain, found.unseen) == (["act"], "")
    else:
        assert found.frames == [] and found.unseen.startswith("nothing is on record after quick#1: no effect was")


@effect
async def pay(cents: int) -> None:
    await asyncio.Event().wait()


async def checked_out(cents: int) -> None:
    await pay(cents)


@durable(name="cut off amid an effect")
async def shopping() -> None:
    await quick()
    await checked_out(500)


async def shop_for_ever(_: Link, home: Home) -> None:
    control_watch.LOOK_SECONDS = 0.001
    async with home.open() as app:
        await app.run("shop", shopping)


@pytest.mark.req("R15", "R84", "R116")
async def test_an_effect_that_was_killed_half_way_shows_the_functions_around_it_and_is_uncertain(
    home: Home, children: Nursery
) -> None:
    child = children.start(shop_for_ever, home)
    async with home.open() as app:

        async def is_noted() -> bool:
            known = await app.tasks.get("shop")
            return known is not None and any(frame.stack for frame in (await where(app.tasks, "shop")).frames)

        await wait_until(is_noted)
        child.kill()
        found = await where(app.tasks, "shop")
    (frame,) = found.frames
    assert (frame.path, frame.call, frame.state) == ("pay#1", "pay(500)", "uncertain")
    assert found.uncertain == ["pay"] and found.next.startswith("whether pay happened is settled first")
    calls = [line.partition(" at ")[0] for line in frame.stack]
    assert calls == ["shopping()", "checked_out(cents=500)", "pay(cents=500)"]


async def is_under_way(app: Perdure) -> bool:
    if await app.tasks.get("copy") is None:
        return False
    found = await where(app.tasks, "copy")
    return [frame.state for frame in found.frames] == ["under way"] and found.percent == 40


async def test_a_run_whose_task_another_process_works_on_says_whom_it_waits_for(
    home: Home, children: Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    child = children.start(copy_for_ever, home, False)
    async with home.open() as app:
        await wait_until(lambda: is_under_way(app))
        work = asyncio.ensure_future(app.run("copy", copying, 10, False))
        await wait_until(lambda: bool(caplog.records))
        work.cancel()
    (said,) = [record.getMessage() for record in caplog.records]
    assert "waiting for task copy" in said and f"(pid {child.pid} on " in said


async def test_short_steps_leave_nothing_but_their_results(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await app.run("copy", copying, 7, True)
        task = await app.tasks.handle("copy")
        assert len(await app._store.query("read_journal", uid=task.uid, line=1)) == 7


async def test_what_is_under_way_is_noted_once_and_replay_does_not_count_it(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure._durable.control.control_watch.LOOK_SECONDS", 0.001)
    go, looks = asyncio.Event(), []
    monkeypatch.setattr(
        "perdure._durable.control.control_watch.note_calls", lambda attempt: looks.append(note_calls(attempt))
    )

    @step
    async def slow(number: int) -> int:
        if number == 1:
            await go.wait()
        return number

    @durable(name="slow and quick")
    async def both() -> int:
        return await slow(1) + await slow(2)

    async with Perdure(quick_url) as app:
        work = asyncio.ensure_future(app.run("t", both))
        await wait_until(lambda: len(looks) > 5)
        go.set()
        assert await work == 3
        task = await app.tasks.handle("t")
        kinds = [entry.op for _, entry in await read_line(app._store, task.uid, 1)]
        assert kinds == [BEGUN, "step", "step"]
        fork = await task.fork("again", at="slow#1")
        assert fork.status == "running" and (await where(app.tasks, "again")).frames == []
        assert await app.run("again", both) == 3


async def test_a_failed_task_says_what_it_failed_with_and_how_it_goes_on(tmp_path: Path, capsys: Any) -> None:
    @step
    async def break_down(number: int) -> None:
        raise KeyError("no such page")

    @durable(name="breaking down")
    async def breaking() -> None:
        await break_down(3)

    url = f"sqlite://{tmp_path}/p.db"
    async with Perdure(url) as app:
        with pytest.raises(KeyError):
            await app.run("broken one", breaking)
    assert main(["where", "broken one", "--store", url]) == 0
    told = capsys.readouterr().out
    assert "KeyError: 'no such page'" in told and "`perdure resume 'broken one'` begins a new attempt" in told
    assert main(["show", "broken one", "--store", url]) == 0
    told = capsys.readouterr().out
    assert "KeyError: 'no such page'" in told and "in break_down: raise KeyError" in told
    assert main(["journal", "broken one", "--store", url, "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)["items"]
    assert (line["path"], line["state"]) == ("break_down#1", "raised")
