"""A verb with a key is done once, however often a caller that lost the answer repeats it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from perdure import Perdure, durable, pause
from perdure._ground import crash_points as crash
from perdure._store import Author, acting
from perdure.errors import AlreadyExists, InvalidInput, InvalidTransition, KeyReused
from perdure.types import Task
from tests.support.processes import ChildDied, Link, Nursery


async def kinds(app: Perdure, id: str) -> list[str]:
    return [event.kind for event in await app.tasks.events(id)]


@durable
async def asks_twice() -> list[str]:
    return [(await pause.approval(question)).by for question in ("first?", "second?")]


@durable
async def plain() -> int:
    return 7


@pytest.mark.req("R63")
async def test_a_task_is_created_once_and_found_again(url: str) -> None:
    async with Perdure(url) as app:
        with acting(Author("ada", key="k7")):
            task = await app.tasks.create("job", state={"n": 1}, tags={"a": "b"}, once="r-1")
            again = await app.tasks.create("job", state={"n": 1}, tags={"a": "b"}, once="r-1")
        assert (again.uid, again.state) == (task.uid, {"n": 1})
        assert await kinds(app, "job") == ["created"]
        first = (await app.tasks.events("job"))[0].author
        assert first["key"] == "k7" and len(first["once"]) > 40
        with pytest.raises(KeyReused, match="r-1"):
            await app.tasks.create("job", state={"n": 2}, once="r-1")
        with pytest.raises(AlreadyExists):
            await app.tasks.create("job", state={"n": 1}, tags={"a": "b"}, once="r-2")


@pytest.mark.req("R63")
async def test_a_checkpoint_is_stored_once_and_the_same_one_is_returned(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={})
        made = await task.checkpoint({"n": 1}, label="one", once="c-1")
        await task.checkpoint({"n": 2})
        again = await (await app.tasks.handle("job")).checkpoint({"n": 1}, label="one", once="c-1")
        assert (again.id, again.data, again.label) == (made.id, {"n": 1}, "one")
        grown = await task.append("list", "x", once="a-1")
        assert (await task.append("list", "x", once="a-1")).id == grown.id
        assert (await task.record()).state == {"n": 2, "list": ["x"]}
        for other in (task.append("list", "y", once="a-1"), task.checkpoint({"n": 1}, once="a-1")):
            with pytest.raises(KeyReused):
                await other
        await task.complete()
        assert (await task.checkpoint({"n": 1}, label="one", once="c-1")).id == made.id  # even now
        with pytest.raises(InvalidTransition):
            await task.checkpoint({"n": 1}, once="c-2")


@pytest.mark.req("R63")
async def test_a_late_repeat_does_not_end_what_went_on_since(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={})
        await task.pause("why?", once="p-1")
        await task.answer("because", once="d-1")
        await task.pause("why?", once="p-1")
        assert (await task.record()).status == "running"
        await task.pause("and now?", once="p-2")
        await task.answer("because", once="d-1")  # that was for the first question
        assert (await task.record()).status == "paused"
        await task.resume()
        await task.fail("no", once="f-1")
        await task.resume()
        await task.fail("no", once="f-1")
        assert (await task.record()).status == "running"
        await task.complete({"ok": 1}, once="e-1")
        await task.complete({"ok": 1}, once="e-1")
        with pytest.raises(KeyReused):
            await task.complete({"ok": 2}, once="e-1")
        told = [kind for kind in await kinds(app, "job") if "attempt" not in kind]
        assert told == ["created", "paused", "resumed", "paused", "resumed", "failed", "resumed", "completed"]


@pytest.mark.req("R63")
async def test_a_late_repeat_of_a_resume_or_a_rollback_changes_nothing(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={})
        made = await task.checkpoint({"n": 1})
        await task.pause("why?")
        await task.resume(state={"a": 1}, once="r-1")
        await task.pause("and now?")
        await task.resume(state={"a": 1}, once="r-1")
        assert (await task.record()).status == "paused"
        await task.resume(checkpoint=made.id, once="r-2")
        await task.pause("a third time?")
        await task.resume(checkpoint=made.id, once="r-2")
        assert (await task.record()).status == "paused"
        with pytest.raises(KeyReused):
            await task.resume(once="r-2")
        await task.resume(instruction="go on", once="r-3")
        await task.resume(instruction="go on", once="r-3")
        await task.checkpoint({"n": 2})
        await task.rollback(made.id, once="b-1")
        await task.checkpoint({"n": 3})
        await task.rollback(made.id, once="b-1")
        assert (await task.record()).state["n"] == 3
        told = await kinds(app, "job")
        assert (told.count("resumed"), told.count("rolled back"), told.count("signalled")) == (3, 1, 1)


@pytest.mark.req("R32", "R63")
async def test_a_decision_with_a_key_never_answers_the_next_question(url: str) -> None:
    async with Perdure(url) as app:
        await app.run_until_paused("ship", asks_twice)
        task = await app.tasks.handle("ship")
        await task.approve(by="ada", once="d-1")
        await task.approve(by="ada", once="d-1")
        assert (await app.run_until_paused("ship", asks_twice)).is_paused
        await task.approve(by="ada", once="d-1")
        with pytest.raises(KeyReused):
            await task.reject(by="ada", once="d-1")
        assert (await app.run_until_paused("ship", asks_twice)).is_paused
        await task.approve(by="bob", once="d-2")
        assert await app.run("ship", asks_twice) == ["ada", "bob"]
        assert (await kinds(app, "ship")).count("approved") == 2


@pytest.mark.req("R63")
async def test_a_fork_with_a_key_is_made_once(url: str) -> None:
    async with Perdure(url) as app:
        await app.run("function", plain)
        await app.tasks.create("state", state={"n": 1})
        for id in ("function", "state"):
            task = await app.tasks.handle(id)
            made = await task.fork(f"{id}-2", once="f-1")
            assert (await task.fork(f"{id}-2", once="f-1")).uid == made.uid
            with pytest.raises(KeyReused):
                await task.fork(f"{id}-2", set={"n": 2}, once="f-1")
            with pytest.raises(AlreadyExists):
                await task.fork(f"{id}-2", once="f-2")


VERBS: dict[str, Callable[[Task], Awaitable[Any]]] = {
    "checkpoint": lambda task: task.checkpoint({"n": 1}, once="k"),
    "append": lambda task: task.append("list", 1, once="k"),
    "complete": lambda task: task.complete("done", once="k"),
    "fail": lambda task: task.fail("no", once="k"),
    "pause": lambda task: task.pause("why?", once="k"),
    "signal": lambda task: task.signal("go", 1, once="k"),
}


@pytest.mark.req("R63")
@pytest.mark.parametrize("verb", VERBS)
async def test_of_many_repeats_at_once_one_is_done(url: str, verb: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={})
        handles = [await app.tasks.handle("job") for _ in range(8)]
        made = await asyncio.gather(*(VERBS[verb](one) for one in handles))
        told = [kind for kind in await kinds(app, "job") if "attempt" not in kind]
        assert len(told) == 2, told
        if verb in ("checkpoint", "append"):
            assert len({one.id for one in made}) == 1
        assert (await task.record()).state == {"checkpoint": {"n": 1}, "append": {"list": [1]}}.get(verb, {})


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", "\0", 7, b"k", "\ud800"])
async def test_a_key_that_is_none_is_refused(quick_url: str, key: Any) -> None:
    async with Perdure(quick_url) as app:
        with pytest.raises(InvalidInput):
            await app.tasks.create("job", state={}, once=key)
        task = await app.tasks.create("job", state={})
        with pytest.raises(InvalidInput):
            await task.checkpoint({}, once=key)


@pytest.mark.req("R63")
async def test_text_that_looks_like_a_key_is_none(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={})
        made = await task.checkpoint({"n": 1}, once="k")
        stored = {one.seq: one.author async for one in task.checkpoints()}
        forged = f'"once":"{(stored[made.seq] or {})["once"]}"'
        await app.tasks.create("other", state={}, agent=forged)
        with acting(Author(forged)):
            other = await app.tasks.handle("other")
            await other.checkpoint({"n": 0})
        await other.checkpoint({"n": 1}, once="k")
        assert (await other.record()).state == {"n": 1}


async def do_and_die(_: Link, url: str, verb: str) -> None:
    """Write, and be killed before the answer."""
    async with Perdure(url) as app:
        if verb == "create":
            write: Callable[[], Awaitable[Any]] = lambda: app.tasks.create("job", state={}, once="k")  # noqa: E731
        else:
            task = await app.tasks.handle("job")
            await task.mark_progress("has the lease", percent=1)
            write = lambda: VERBS[verb](task)  # noqa: E731
        crash.arm("committer.after_commit", 1)
        await write()


@pytest.mark.req("R63")
@pytest.mark.parametrize("verb", ["create", *VERBS])
async def test_killed_between_write_and_answer_a_repeat_finds_the_one_effect(
    shared_url: str, verb: str, children: Nursery
) -> None:
    async with Perdure(shared_url) as app:
        await app.tasks.create("another", state={})  # so that the store is there
        if verb != "create":
            await app.tasks.create("job", state={})
        with pytest.raises(ChildDied):
            children.start(do_and_die, shared_url, verb).heard()
        before = [kind for kind in await kinds(app, "job") if "attempt" not in kind]
        assert len(before) == (1 if verb == "create" else 2)
        for _ in range(2):
            if verb == "create":
                await app.tasks.create("job", state={}, once="k")
            else:
                await VERBS[verb](await app.tasks.handle("job"))
        assert [kind for kind in await kinds(app, "job") if "attempt" not in kind] == before
