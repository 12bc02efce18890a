"""Handlers are told what happens to tasks: what they asked for, at least once, by one of several workers."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path

import pytest

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure._tasks import handlers_of, undelivered
from perdure._worker.delivery.deliveries import Deliveries
from perdure.automation import Event
from perdure.errors import InvalidInput
from tests.coordination.team import note, noted
from tests.coordination.test_schedules import until
from tests.support.processes import Link, Nursery


async def some(found: list) -> list:
    return found


@pytest.mark.req("R29")
async def test_a_handler_for_a_reason_is_told_of_that_reason_only(url):
    told: list[tuple[str, str]] = []
    async with Perdure(url) as app:

        @app.on("paused", reason="rate_limit")
        async def limited(event: Event) -> None:
            told.append((event.task_id, event.data["reason"]))

        ended: list[str] = []

        @app.on("completed")
        async def done(event: Event) -> None:
            ended.append(event.task_id)

        async with app.worker():
            await until(lambda: _posts(app, 2))
            for n, reason in enumerate(("human_input", "rate_limit", "checkpoint", "rate_limit")):
                task = await app.tasks.open(f"t{n}")
                await task.pause("wait", reason=reason)
            await (await app.tasks.open("t9")).complete()
            await until(lambda: some(ended))
            await until(lambda: _told(told, 2))
    assert sorted(told) == [("t1", "rate_limit"), ("t3", "rate_limit")] and ended == ["t9"]


async def _told(told: list, number: int) -> bool:
    return len(told) >= number


async def _posts(app: Perdure, number: int) -> bool:
    records = await handlers_of(app._store).all()
    return len([one for one in records if one.value.worker is not None]) >= number


@pytest.mark.req("R29")
async def test_what_happens_while_no_worker_runs_is_told_later_and_in_order(url):
    told: list[str] = []

    def listening() -> Perdure:
        app = Perdure(url)

        @app.on("*", name="all")
        async def every(event: Event) -> None:
            told.append(f"{event.number} {event.kind}")

        return app

    async with listening() as app:
        old = await app.tasks.open("old")
        await old.complete()
        async with app.worker():
            await until(lambda: _posts(app, 1))
        assert not await _posts(app, 1)
        task = await app.tasks.open("t")
        await task.checkpoint({})
        await task.pause("x", reason="checkpoint")
        await task.resume()
        await task.complete()
        kinds = [event.kind for event in await app.tasks.events("t")]
        async with app.worker():
            await until(lambda: _told(told, len(kinds)))
        assert [line.split(" ", 1)[1] for line in told] == kinds
        async with listening() as again, again.worker():  # what it has had is not told again
            await (await again.tasks.open("more")).complete()
            await until(lambda: _told(told, len(kinds) + 3))
    assert [line for line in told if line.endswith("completed")] == [f"{len(kinds)} completed", "3 completed"]


async def test_a_handler_that_raises_is_told_again_and_named_and_others_are_not_held_up(
    quick_url: str, clock: MovableClock, caplog: pytest.LogCaptureFixture
):
    told: list[str] = []
    async with Perdure(quick_url) as app:

        @app.on("completed", name="moody")
        async def moody(event: Event) -> None:
            told.append(event.task_id)
            if event.task_id == "bad" and told.count("bad") < 3:
                raise ValueError("not yet")

        async with app.worker():
            await until(lambda: _posts(app, 1))
            with caplog.at_level(logging.WARNING, "perdure.handlers"):
                await (await app.tasks.open("bad")).complete()
                await until(lambda: _told(told, 1))
                await (await app.tasks.open("good")).complete()
                await until(lambda: _good(told))
                (record,) = await handlers_of(app._store).all()
                assert "ValueError: not yet" in record.value.trouble and "bad" in record.value.trouble
                for n in (2, 3):
                    clock.advance(seconds=2)
                    await until(lambda n=n: _bad(told, n))
            await until(lambda: _calm(app))
    assert told.count("bad") == 3 and told.count("good") == 1
    assert "handler moody failed at event" in caplog.text


async def _good(told: list[str]) -> bool:
    return "good" in told


async def _bad(told: list[str], number: int) -> bool:
    return told.count("bad") >= number


async def _calm(app: Perdure) -> bool:
    return all(not one.value.trouble for one in await handlers_of(app._store).all())


async def listen(link: Link, url: str, place: str) -> None:
    async with Perdure(url) as app:

        @app.on("completed", name="listener")
        async def heard(event: Event) -> None:
            note(place, event.task_id)

        async with app.worker():
            link.send(("said", "ready"))
            await asyncio.Event().wait()


@pytest.mark.req("R29", "R49")
async def test_of_several_workers_one_tells_and_when_it_dies_another(shared_url, tmp_path: Path, children: Nursery):
    place = tmp_path / "log"
    workers = [children.start(listen, shared_url, str(place)) for _ in range(3)]
    for worker in workers:
        worker.heard()
    async with Perdure(shared_url) as app:
        await until(lambda: _posts(app, 1))
        for n in range(5):
            await (await app.tasks.open(f"t{n}")).complete()
        await until(lambda: _told_lines(place, 5))
        await until(lambda: _written_off(app))
        workers_by_id = await app._store.query("read_workers")
        (record,) = await handlers_of(app._store).all()
        telling = next(row[5] for row in workers_by_id if row[0] == record.value.worker)
        next(worker for worker in workers if worker.pid == telling).kill()
        await (await app.tasks.open("after")).complete()
        await until(lambda: _told_lines(place, 6))
    assert sorted(noted(place)) == ["after", "t0", "t1", "t2", "t3", "t4"]


async def _written_off(app: Perdure) -> bool:
    """What was told is known to have been: killed now, it is not told again."""
    (record,) = await handlers_of(app._store).all()
    return not await undelivered(app._store, "listener", since=record.value.since, ended_since=0, limit=100)


async def _told_lines(place: Path, number: int) -> bool:
    return len(noted(place)) >= number


async def test_what_never_happens_is_refused(quick_url: str):
    async with Perdure(quick_url) as app:
        for event, reason in (("pause", None), ("", None), ("paused", "tired")):
            with pytest.raises(InvalidInput):
                app.on(event, reason=reason)(print)
        app.on("paused")(print)
        with pytest.raises(InvalidInput, match="already"):
            app.on("failed")(print)


@pytest.mark.req("R29")
async def test_a_handler_misses_nothing_that_happens_once_the_worker_has_begun(url, tmp_path, monkeypatch):
    """However long it takes until its post is on record."""
    clock = MovableClock(tmp_path / "clock")
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(clock.path))
    told: list[str] = []
    may_begin = asyncio.Event()

    async def later(self: Deliveries) -> timedelta | None:
        await may_begin.wait()
        return await round_of(self)

    round_of = Deliveries.round
    monkeypatch.setattr(Deliveries, "round", later)
    async with Perdure(url) as app:

        @app.on("*")
        async def every(event: Event) -> None:
            told.append(event.kind)

        async with app.worker():
            await app.tasks.open("early")
            clock.advance(seconds=1)
            may_begin.set()
            await until(lambda: some(told))
    assert told[0] == "created"


@pytest.mark.req("R29")
async def test_a_handler_that_is_made_while_a_worker_runs_is_told_from_then_on(url):
    told: list[str] = []
    async with Perdure(url) as app, app.worker():
        await (await app.tasks.open("before")).complete()

        @app.on("completed")
        async def done(event: Event) -> None:
            told.append(event.task_id)

        await (await app.tasks.open("after")).complete()
        await until(lambda: some([id for id in told if id == "after"]))
