"""Triggers: what happens outside leads to one run, however often it is told and whoever dies on the way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, signals, step
from perdure._ground.clock import MovableClock
from perdure._model import Trigger, signalled_task
from perdure._worker.waits.triggers import Triggers
from perdure.errors import InvalidId, InvalidInput, NotFound, TooLarge
from tests.coordination.team import note, noted, run_worker
from tests.coordination.test_schedules import until
from tests.support.processes import Nursery

LONG = timedelta(seconds=120)


@dataclass
class Invoice:
    number: int
    total: float = 0.0


@step
async def handle(place: str, what: str) -> None:
    note(place, what)


@durable(name="trig.book")
async def book(place: str, invoice: Invoice) -> int:
    await handle(place, f"{type(invoice).__name__}-{invoice.number}")
    return invoice.number


@durable(name="trig.read")
async def read(place: str, path: str) -> str:
    await handle(place, f"{Path(path).name}={Path(path).read_text()}")
    return path


@durable(name="trig.waiting")
async def waiting(place: str) -> list[int]:
    first = await signals.next("paid", dict)
    second = await signals.next("paid", dict)
    return [first["number"], second["number"]]


# ── events ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R50")
async def test_the_same_event_five_times_is_one_run(url, tmp_path: Path):
    place = tmp_path / "log"
    async with Perdure(url) as app, app.worker():
        await app.triggers.start("book", book, str(place)).event("invoice")
        sent = [await app.events.send("invoice", {"number": 7}, id="evt-1") for _ in range(5)]
        assert [one.is_new for one in sent] == [True, False, False, False, False]
        record = await until(lambda: app.tasks.get("book@evt-1"))
        assert (await app.tasks.wait_for("book@evt-1", timeout=LONG)).result == 7
        assert record.tags == {"trigger": "book", "event": "invoice"}
        again = await app.events.send("invoice", {"number": 7}, id="evt-1")
        assert not again.is_new
        (event,) = await until(lambda: _over(app))
        assert event.led_to == {"book": "book@evt-1"} and event.refused == {}
    assert noted(place) == ["Invoice-7"]


async def _over(app: Perdure):
    found = await app.events.list()
    return found if found and all(event.is_over for event in found) else None


@pytest.mark.req("R50")
async def test_an_event_is_acted_on_after_everything_was_killed(shared_url, tmp_path: Path, children: Nursery):
    place = tmp_path / "log"
    async with Perdure(shared_url) as app:
        await app.triggers.start("book", book, str(place)).event("invoice")
        await app.events.send("invoice", {"number": 1}, id="e")
        dying = children.start(run_worker, shared_url, "triggers.acted")
        dying.heard()
        dying.wait()
        assert not (await app.events.list())[0].is_over
        children.start(run_worker, shared_url).heard()
        await app.tasks.wait_for("book@e", timeout=LONG)
        await until(lambda: _over(app))
    assert noted(place) == ["Invoice-1"]


@pytest.mark.req("R50")
async def test_what_does_not_fit_is_refused_before_it_is_kept(quick_url: str, tmp_path: Path):
    async with Perdure(quick_url) as app:
        await app.triggers.start("book", book, "x").event("invoice")
        for wrong in ({"number": "seven"}, {}, None, [1]):
            with pytest.raises(InvalidInput):
                await app.events.send("invoice", wrong, id="e")
        with pytest.raises(NotFound, match="trigger for the event 'other'"):
            await app.events.send("other", {})
        with pytest.raises(InvalidId):
            await app.events.send("invoice", {"number": 1}, id="a\nb")
        with pytest.raises(InvalidInput, match="at most 128"):
            await app.events.send("invoice", {"number": 1}, id="x" * 150)
        await app.triggers.signal("all", "t", "s").event("big")
        with pytest.raises(TooLarge):
            await app.events.send("big", "x" * (1 << 20))
        assert await app.events.list() == []


@pytest.mark.req("R50")
async def test_an_event_signals_the_task_it_names_once(url):
    async with Perdure(url) as app, app.worker():
        await app.triggers.signal("paid", "order-{number}", "paid").event("payment")
        handle_ = await app.start("order-42", waiting, "x")
        await app.tasks.wait_for("order-42", status="paused", timeout=LONG)
        for _ in range(3):
            await app.events.send("payment", {"number": 42}, id="first")
        await until(lambda: _over(app))
        await app.tasks.wait_for("order-42", status="paused", timeout=LONG)  # it waits for another one
        await app.events.send("payment", {"number": 42}, id="second")
        assert await handle_.result(LONG) == [42, 42]


@pytest.mark.req("R50")
async def test_a_worker_that_dies_after_signalling_signals_nothing_twice(shared_url, children: Nursery):
    async with Perdure(shared_url) as app:
        await app.triggers.signal("paid", "order", "paid").event("payment")
        task = await app.tasks.open("order")
        await app.events.send("payment", {"number": 42}, id="e")
        dying = children.start(run_worker, shared_url, "triggers.acted")
        dying.heard()
        dying.wait()
        children.start(run_worker, shared_url).heard()
        await until(lambda: _over(app))
        sent = await app._store.query("read_signals", uid=task.uid)
        assert [row[0] for row in sent] == ["paid"]


async def test_an_event_that_leads_nowhere_is_named_and_holds_up_no_other(quick_url: str):
    async with Perdure(quick_url) as app, app.worker():
        await app.triggers.signal("paid", "order-{number}", "paid").event("payment")
        await app.events.send("payment", {"number": 1}, id="nobody")
        await app.events.send("payment", {"no": "number"}, id="nameless")
        events = {event.id: event for event in await until(lambda: _over(app))}
        assert "no task 'order-1'" in events["nobody"].refused["paid"]
        assert "no field 'number'" in events["nameless"].refused["paid"]


def test_a_limit_gives_each_event_a_moment_and_keeps_it():
    trigger = Trigger(most=2, per_ms=1000)
    first, trigger = trigger.slot("a", 0)
    second, trigger = trigger.slot("b", 100)
    third, same = trigger.slot("c", 200)
    assert (first, second, third) == (0, 100, 1000) and same is trigger
    assert trigger.slot("a", 500) == (0, trigger)
    later, trigger = trigger.slot("c", 1001)
    assert later == 1001 and [who for _, who in trigger.begun] == ["b", "c"]


@pytest.mark.req("R50")
async def test_an_event_that_comes_with_its_trigger_while_a_worker_looks_is_not_lost(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(url) as app:
        duty = Triggers(app.tasks)
        all_of = duty._triggers.all

        async def all_as_it_begins() -> Any:
            monkeypatch.setattr(duty._triggers, "all", all_of)
            found = await all_of()
            await app.triggers.start("book", book, str(tmp_path / "log")).event("invoice")
            await app.events.send("invoice", {"number": 1}, id="e1")
            return found

        monkeypatch.setattr(duty._triggers, "all", all_as_it_begins)
        for _ in range(2):
            await duty.round()
        assert await app.tasks.get("book@e1") is not None


@pytest.mark.req("R50")
async def test_no_more_begin_than_the_rate_allows_and_none_is_lost(quick_url: str, clock: MovableClock, tmp_path: Path):
    place = tmp_path / "log"
    async with Perdure(quick_url) as app, app.worker():
        await app.triggers.start("book", book, str(place)).event("invoice", rate=(2, timedelta(minutes=1)))
        for n in range(5):
            await app.events.send("invoice", {"number": n}, id=f"e{n}")
        for begun in (2, 4, 5):
            await until(lambda begun=begun: _begun(place, begun))
            assert len(noted(place)) == begun
            clock.advance(minutes=1, seconds=1)
    assert sorted(noted(place)) == [f"Invoice-{n}" for n in range(5)]


async def _begun(place: Path, number: int) -> bool:
    return len(noted(place)) >= number


async def test_a_paused_trigger_leaves_its_events_waiting(quick_url: str, clock: MovableClock, tmp_path: Path):
    place = tmp_path / "log"
    async with Perdure(quick_url) as app, app.worker():
        await app.triggers.start("book", book, str(place)).event("invoice")
        await app.triggers.pause("book")
        await app.events.send("invoice", {"number": 1}, id="e")
        await app.triggers.resume("book")
        clock.advance(seconds=10)
        await app.events.send("invoice", {"number": 2}, id="f")
        await until(lambda: _begun(place, 2))
        await app.triggers.remove("book")
        with pytest.raises(NotFound):
            await app.triggers.pause("book")
        assert await app.triggers.list() == {}


def test_only_fields_name_a_task():
    assert signalled_task("order-{number}", {"number": 3}) == "order-3"
    assert signalled_task("fixed", None) == "fixed"
    for data in ({}, {"number": None}, {"number": {"a": 1}}, None):
        with pytest.raises(InvalidInput):
            signalled_task("order-{number}", data)
    assert signalled_task("{a.__class__}", {"a": 1}) == "{a.__class__}"


# ── files ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R50")
async def test_a_file_that_changes_leads_to_a_run_for_each_change(quick_url: str, tmp_path: Path):
    place, config = tmp_path / "log", tmp_path / "config.toml"
    config.write_text("zero")
    async with Perdure(quick_url) as app, app.worker():
        await app.triggers.start("reload", read, str(place)).file(config)
        for n, text in enumerate(("one", "second"), 1):
            config.write_text(text)
            await until(lambda n=n: _begun(place, n))
    assert noted(place) == ["config.toml=one", "config.toml=second"]


@pytest.mark.req("R50")
async def test_each_dropped_file_is_read_once_by_one_of_several_workers(shared_url, tmp_path: Path, children: Nursery):
    place, inbox = tmp_path / "log", tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "early.txt").write_text("1")
    (inbox / "other.pdf").write_text("x")
    (inbox / ".hidden.txt").write_text("x")
    (inbox / "link.txt").symlink_to("/etc/hostname")
    async with Perdure(shared_url) as app:
        await app.triggers.start("read", read, str(place)).directory(inbox, pattern="*.txt")
        workers = [children.start(run_worker, shared_url) for _ in range(2)]
        for worker in workers:
            worker.heard()
        await until(lambda: _begun(place, 1))
        (inbox / "late.txt").write_text("2")
        await until(lambda: _completed(app, 2))
        for worker in workers:
            worker.kill()
        children.start(run_worker, shared_url).heard()  # a new one finds the same files, and knows them
        (inbox / "last.txt").write_text("3")
        await until(lambda: _begun(place, 3))
    assert sorted(noted(place)) == ["early.txt=1", "last.txt=3", "late.txt=2"]


async def _completed(app: Perdure, number: int) -> bool:
    return len(await app.tasks.list(tags={"trigger": "read"}, status="completed")) >= number


async def test_an_event_is_forgotten_after_a_while_and_a_file_not_as_long_as_it_lies_there(
    quick_url: str, clock: MovableClock, tmp_path: Path
):
    place, inbox = tmp_path / "log", tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "a.txt").write_text("1")
    async with Perdure(quick_url) as app:
        await app.triggers.start("read", read, str(place)).directory(inbox)
        await app.triggers.start("book", book, str(place)).event("invoice")
        async with app.worker():
            await app.events.send("invoice", {"number": 1}, id="e")
            await until(lambda: _begun(place, 2))
            await until(lambda: _over(app))
        clock.advance(days=8)
        async with app.worker():  # one that has never seen the file
            await until(lambda: _only_file(app))
            await asyncio.sleep(0)
    assert sorted(noted(place)) == ["Invoice-1", "a.txt=1"]


async def _only_file(app: Perdure) -> bool:
    return [event.name for event in await app.events.list()] == ["~read"]
