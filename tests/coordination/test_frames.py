"""Frames: a line of thought that was interrupted is taken up again where it was, also after a kill."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from perdure import Perdure, durable, frames, step
from perdure import sync as blocking
from perdure._ground.clock import MovableClock
from perdure._tasks import open_frames
from perdure.errors import Conflict, InvalidInput, NotFound
from tests.support.processes import Link, Nursery

SIX = ["read", "list", "rename", "fix imports", "run tests", "tell"]


async def interrupted(link: Link, url: str) -> None:
    """An agent that is at step 3 of 6 when a message comes: it sets its work aside, answers, and is killed."""
    app = Perdure(url)
    task = await app.tasks.open("refactor")
    await task.frames.push("rename the module", goal="one name", done=SIX[:3], next=SIX[3:], because="a question")
    await task.frames.acknowledge("rename the module")
    link.send(("said", "answered"))
    await asyncio.Event().wait()


@pytest.mark.req("R119")
async def test_a_message_at_three_of_six_and_a_kill_later_it_is_back_at_step_four(shared_url, children: Nursery):
    child = children.start(interrupted, shared_url)
    child.heard()
    child.kill()
    async with Perdure(shared_url) as app:
        (frame,) = await open_frames(app._store, "refactor")
        assert frame.announcement == "back to rename the module, step 4/6: fix imports"
        assert (frame.goal, list(frame.done), frame.because) == ("one name", SIX[:3], "a question")
        assert frame.acknowledged_at is not None and frame.resumed_at is None


@pytest.mark.req("R119")
async def test_who_is_killed_right_after_resuming_still_finds_the_frame(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("t")
        await task.frames.push("x", goal="g", done=["a"], next=["b"])
        taken = await task.frames.resume()
        assert taken is not None and taken.announcement == "back to x, step 2/2: b"
        (found,) = await open_frames(app._store, "t")
        assert found.resumed_at is not None
        again = await task.frames.resume()
        assert again is not None and again.name == "x"
        await task.frames.finish("x")
        assert await task.frames.open() == [] and await task.frames.resume() is None


@pytest.mark.req("R119")
async def test_frames_stack_and_the_newest_is_resumed_first(url):
    async with Perdure(url) as app:
        stack = (await app.tasks.open("t")).frames
        await stack.push("outer", goal="g", next=["a"])
        await stack.push("inner", goal="g", next=["b"])
        assert [frame.name for frame in await stack.open()] == ["inner", "outer"]
        assert (await stack.resume()).name == "inner"
        await stack.finish("inner")
        assert (await stack.resume()).name == "outer"


async def test_the_stack_is_bounded_and_nothing_of_it_is_forgotten_silently(url):
    async with Perdure(url) as app:
        stack = (await app.tasks.open("t")).frames
        for n in range(8):
            await stack.push(f"f{n}", goal="g", next=["a"])
        with pytest.raises(Conflict, match="8 lines of thought"):
            await stack.push("one more", goal="g", next=["a"])
        await stack.drop("f0", why="not wanted any more")
        await stack.push("one more", goal="g", next=["a"])
        assert [(one.name, one.why) for one in await stack.gone()] == [("f0", "not wanted any more")]


async def test_a_frame_expires_and_says_so(url, clock: MovableClock):
    async with Perdure(url) as app:
        stack = (await app.tasks.open("t")).frames
        await stack.push("x", goal="g", next=["a"], expires=timedelta(hours=1))
        await stack.push("y", goal="g", next=["a"], expires=None)
        clock.advance(hours=2)
        assert [frame.name for frame in await stack.open()] == ["y"]
        assert [(one.name, one.why) for one in await stack.gone()] == [("x", "expired")]
        with pytest.raises(NotFound, match="no frame 'x'") as told:
            await stack.resume("x")
        assert "expired" in told.value.do


async def test_what_says_nothing_is_refused(url):
    async with Perdure(url) as app:
        stack = (await app.tasks.open("t")).frames
        for wrong in ({"goal": " "}, {"goal": "g", "next": "one text"}, {"goal": "g", "done": ["x"] * 101}):
            with pytest.raises(InvalidInput):
                await stack.push("x", **wrong)
        with pytest.raises(InvalidInput):
            await stack.push("x", goal="g", expires=timedelta(0))
        with pytest.raises(NotFound):
            await stack.acknowledge("x")
        assert await stack.open() == []


async def test_of_two_who_push_at_once_neither_is_lost(url):
    async with Perdure(url) as app:
        stack = (await app.tasks.open("t")).frames
        await asyncio.gather(*(stack.push(f"f{n}", goal="g", next=["a"]) for n in range(6)))
        assert sorted(frame.name for frame in await stack.open()) == [f"f{n}" for n in range(6)]


async def test_frames_go_with_their_task(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("t")
        await task.frames.push("x", goal="g", next=["a"])
        await task.complete()
        await task.delete()
        assert await app._store.query("list_values", uid=task.uid, kind="frames", after="", limit=10) == []


handled: list[str] = []


@step
async def reply(text: str) -> str:
    handled.append(text)
    return f"re: {text}"


@durable(name="thinker")
async def thinker() -> str:
    await frames.push("x", goal="g", done=["a"], next=["b", "c"])
    await reply("hello")
    await frames.acknowledge("x")
    frame = await frames.resume()
    assert frame is not None
    return frame.announcement


@pytest.mark.req("R119")
async def test_inside_a_durable_function_frames_are_recorded(url):
    handled.clear()
    async with Perdure(url) as app:
        assert await app.run("t", thinker) == "back to x, step 2/3: b"
        assert handled == ["hello"]
        (frame,) = await open_frames(app._store, "t")
        assert frame.resumed_at is not None


def test_the_blocking_face_has_them_too(tmp_path):
    with blocking.Perdure(f"sqlite://{tmp_path}/p.db") as app:
        task = app.tasks.open("t")
        task.frames.push("x", goal="g", done=["a"], next=["b"])
        frame = task.frames.resume()
        assert frame is not None and frame.announcement == "back to x, step 2/2: b"
