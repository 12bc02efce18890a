"""Why does nobody work on it? `where` knows."""

from __future__ import annotations

import pytest

from perdure import Perdure, durable
from perdure._durable import where
from perdure._durable.versions import _known
from tests.support.processes import Nursery
from tests.torture.kills import Home
from tests.worker.kit import opened, quick, until, work


@durable
async def unknown_elsewhere() -> None: ...


async def other_code(number: str) -> None: ...


async def next_of(app: Perdure, id: str) -> str:
    return (await where(app.tasks, id)).next


async def _is(app: Perdure, id: str, words: str) -> bool:
    return words in await next_of(app, id)


@pytest.mark.req("R94")
async def test_a_task_whose_code_no_live_worker_knows_says_so(home: Home, children: Nursery) -> None:
    async with opened(home) as app:
        await app.start("task", unknown_elsewhere)
        assert "no worker is running" in await next_of(app, "task")
        worker = children.start(work, home)
        worker.heard()
        await until(lambda: _is(app, "task", "no live worker knows unknown_elsewhere"))
        worker.kill()
        assert "no worker is running" in await next_of(app, "task")


@pytest.mark.req("R94")
async def test_a_task_that_its_worker_cannot_begin_says_why(home: Home, children: Nursery) -> None:
    worker = children.start(work, home)
    worker.heard()
    async with opened(home) as app:
        known = _known.pop(("quick", 1))
        try:
            await app.start("task", durable(name="quick")(other_code), "no number")
        finally:
            _known["quick", 1] = known
        await until(lambda: _is(app, "task", "could not begin: the stored value does not fit"))
        assert f"(pid {worker.pid} on " in await next_of(app, "task")


async def test_another_version_or_queue_is_named(home: Home, children: Nursery) -> None:
    newer = durable(name="quick", version=2)(quick.function)
    try:
        worker = children.start(work, home)
        worker.heard()
        async with opened(home) as app:
            await app.start("newer", newer, 1)
            await app.start("elsewhere", quick.options(queue="slow"), 1)
            await until(lambda: _is(app, "newer", "no live worker knows quick version 2; they know version 1"))
            assert "no live worker takes tasks of queue 'slow'" in await next_of(app, "elsewhere")
    finally:
        del _known["quick", 2]


async def test_old_and_new_workers_side_by_side_take_what_they_know(home: Home, children: Nursery) -> None:
    old = children.start(work, home)
    old.heard()
    newer = durable(name="quick", version=2)(quick.function)
    try:
        async with opened(home) as app, app.worker():
            handles = [await app.start(f"new-{n}", newer, n) for n in range(5)]
            handles += [await app.start(f"old-{n}", quick, n) for n in range(5)]
            for handle in handles:
                await handle.result()
            for n in range(5):
                attempts = (await (await app.tasks.handle(f"new-{n}")).record()).attempts
                assert old.pid not in [attempt.pid for attempt in attempts]
    finally:
        del _known["quick", 2]
