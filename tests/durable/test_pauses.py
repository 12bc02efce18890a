"""`pause.*`: a durable function stops for a reason, holds no process, and goes on exactly once with the answer."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure import Perdure, checks, durable, pause, recorded, signals, step
from perdure._ground.clock import MovableClock
from perdure._worker.waits.pollers import Pollers
from perdure._worker.waits.timers import Timers
from perdure.errors import Conflict, InvalidInput, NotFound, RateLimited, Rejected, TaskFailed, TimedOut
from perdure.pause import Approval
from perdure.types import Handle, TaskRecord
from tests.support.fixtures import emptied_for_each_test
from tests.support.waiting import look_again

ran: list[str] = []


_nothing_ran = emptied_for_each_test(ran)


@step
async def note(what: str) -> str:
    ran.append(what)
    return what


@asynccontextmanager
async def at_work(url: str) -> AsyncIterator[Perdure]:
    async with Perdure(url) as app, app.worker():
        yield app


async def seen(app: Perdure, id: str, holds: Callable[[TaskRecord], bool]) -> TaskRecord:
    """The record, as soon as it is as it should be."""
    try:
        async with asyncio.timeout(120):
            while True:
                record = await app.tasks.get(id)
                if record is not None and holds(record):
                    return record
                await look_again()
    except TimeoutError:
        events = [(event.kind, str(event.at), event.data) for event in await app.tasks.events(id)]
        pytest.fail(f"waited for something else: {await app.tasks.get(id)}\n{events}")


async def paused(app: Perdure, id: str, reason: str) -> TaskRecord:
    return await seen(app, id, lambda record: record.pause is not None and record.pause.reason == reason)


async def ended(handle: Handle[Any]) -> Any:
    async with asyncio.timeout(120):
        return await handle.result()


async def kinds(app: Perdure, id: str) -> list[str]:
    return [event.kind for event in await app.tasks.events(id)]


# ── people ───────────────────────────────────────────────────────────────────────────────────────


@durable
async def ship() -> str:
    await note("built")
    yes = await pause.approval("Ship it?", editable={"to": "staging"})
    return f"{yes.by} {yes.comment} {yes.edited}"


@pytest.mark.req("R32")
async def test_the_first_decision_stands_and_the_second_is_a_conflict(url: str) -> None:
    async with at_work(url) as app:
        handle = await app.start("ship", ship)
        await paused(app, "ship", "human_approval")
        task = await app.tasks.handle("ship")
        await task.approve(by="ada", comment="go", edited={"to": "production"})
        with pytest.raises(Conflict, match=r"; ada decided the last one at \d{4}-"):
            await task.reject(by="bob")
        assert await ended(handle) == "ada go {'to': 'production'}"
    assert ran == ["built"]


@pytest.mark.req("R32")
async def test_a_rejection_is_raised_with_who_and_why(quick_url: str) -> None:
    @durable
    async def asks() -> str:
        try:
            await pause.approval("Really?")
        except Rejected as no:
            return f"{no.by}: {no.comment}"
        return "yes"

    async with at_work(quick_url) as app:
        handle = await app.start("asks", asks)
        await paused(app, "asks", "human_approval")
        task = await app.tasks.handle("asks")
        with pytest.raises(InvalidInput, match="nothing of it may be edited"):
            await task.approve(by="ada", edited={"x": 1})
        await task.reject(by="bob", comment="too early")
        assert await ended(handle) == "bob: too early"
        assert "rejected" in await kinds(app, "asks")


@pytest.mark.req("R35")
@pytest.mark.parametrize("default", ["approve", "reject"])
async def test_an_approval_nobody_decides_on_is_reminded_of_once_and_takes_its_default(
    quick_url: str, clock: MovableClock, default: Any
) -> None:
    @durable
    async def asks() -> str:
        try:
            found = await pause.approval("Really?", expires=timedelta(hours=2), default=default)
        except Rejected as no:
            return f"rejected {no.expired}"
        return f"approved {found}"

    async with at_work(quick_url) as app:
        handle = await app.start("asks", asks)
        record = await paused(app, "asks", "human_approval")
        assert record.pause and record.pause.expires_at and record.pause.next_look_at
        assert record.pause.next_look_at == record.pause.since + timedelta(hours=1)
        clock.advance(hours=1, minutes=1)
        async with asyncio.timeout(120):
            while "reminded" not in await kinds(app, "asks"):
                await look_again()
        assert (await app.tasks.get("asks")).is_paused  # type: ignore[union-attr]
        clock.advance(hours=1)
        wanted = f"approved {Approval(by='')}" if default == "approve" else "rejected True"
        assert await ended(handle) == wanted
        found = await kinds(app, "asks")
        assert found.count("reminded") == 1 and found.count("expired") == 1


@dataclass
class Order:
    item: str
    count: int


@pytest.mark.req("R33")
async def test_an_answer_that_does_not_fit_is_refused_and_the_task_stays_paused(url: str) -> None:
    @durable
    async def asks() -> str:
        order = await pause.input("What do you want?", Order)
        return f"{order.count} {order.item}" if isinstance(order, Order) else "no order"

    async with at_work(url) as app:
        handle = await app.start("asks", asks)
        await paused(app, "asks", "human_input")
        task = await app.tasks.handle("asks")
        for wrong in ("abc", 7, {"item": "tea"}, {"item": "tea", "count": "two"}):
            with pytest.raises(InvalidInput, match="does not fit"):
                await task.answer(wrong)
        assert (await task.record()).is_paused
        await task.answer({"item": "tea", "count": 2})
        assert await ended(handle) == "2 tea"
        with pytest.raises(Conflict):
            await task.answer({"item": "tea", "count": 3})


@pytest.mark.req("R35")
async def test_a_question_with_a_default_answers_itself_and_one_without_runs_out(
    quick_url: str, clock: MovableClock
) -> None:
    @durable
    async def asks() -> str:
        first = await pause.input("How many?", int, expires=timedelta(hours=1), default=3)
        try:
            await pause.input("And why?", str, expires=timedelta(hours=1))
        except TimedOut:
            return f"{first}, no reason"
        return ""

    async with at_work(quick_url) as app:
        handle = await app.start("asks", asks)
        for question in ("How many?", "And why?"):
            await seen(app, "asks", lambda r, q=question: r.pause is not None and r.pause.message == q)  # type: ignore[misc]
            clock.advance(hours=1, seconds=1)
        assert await ended(handle) == "3, no reason"


class Even(msgspec.Struct):
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("it is odd")  # which no schema says


@pytest.mark.req("R33")
async def test_an_answer_that_the_type_refuses_though_the_schema_takes_it_is_asked_for_again(quick_url: str) -> None:
    @durable
    async def asks() -> int:
        return (await pause.input("An even number?", Even)).number

    async with at_work(quick_url) as app:
        handle = await app.start("asks", asks)
        await paused(app, "asks", "human_input")
        task = await app.tasks.handle("asks")
        await task.answer({"number": 3})
        await seen(app, "asks", lambda r: r.pause is not None and "does not fit" in r.pause.message)
        await task.answer({"number": 4})
        assert await ended(handle) == 4


# ── other systems ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R42")
async def test_a_callback_counts_once_and_its_token_is_stored_nowhere(url: str) -> None:
    tokens: list[str] = []

    async def announce(token: str) -> None:
        tokens.append(token)

    @durable
    async def waits() -> dict[str, Any]:
        found: dict[str, Any] = await pause.callback("CI run 812", dict, announce=announce)
        return found

    async with at_work(url) as app:
        handle = await app.start("waits", waits)
        await paused(app, "waits", "external_dependency")
        [token] = tokens
        with pytest.raises(NotFound):
            await app.tasks.deliver(token[:-1] + ("a" if token[-1] != "a" else "b"), {})
        with pytest.raises(InvalidInput, match="does not fit"):
            await app.tasks.deliver(token, "green")
        assert await app.tasks.deliver(token, {"state": "green"})
        assert not await app.tasks.deliver(token, {"state": "red"})
        assert await ended(handle) == {"state": "green"}
        assert tokens == [token], "it was announced once, though its code ran twice"
        uid = (await handle.task()).uid
        kept = repr([await app._store.query(name, uid=uid) for name in ("read_signals", "read_pauses")])
        assert token not in kept and token[-43:] not in kept


@pytest.mark.req("R43")
async def test_a_callback_that_comes_before_the_pause_is_stored_is_its_answer(url: str) -> None:
    async with at_work(url) as app:

        async def announce(token: str) -> None:
            assert await app.tasks.deliver(token, 7)

        @durable
        async def waits() -> int:
            return int(await pause.callback("a number", int, announce=announce))

        assert await app.run("waits", waits) == 7


@pytest.mark.req("R41")
async def test_a_callable_is_asked_until_it_finds_something_with_growing_intervals(
    quick_url: str, clock: MovableClock
) -> None:
    looked: list[int] = []

    async def is_green() -> str | None:
        looked.append(clock.now_ms())
        return "green" if len(looked) == 4 else None

    @durable
    async def waits() -> str:
        await note("before")
        return await pause.poll(is_green, every=timedelta(seconds=10), backoff=2)

    async with at_work(quick_url) as app:
        handle = await app.start("waits", waits)
        for number in range(1, 4):
            await seen(app, "waits", lambda r, n=number: r.is_paused and len(r.attempts) == n)  # type: ignore[misc]
            clock.advance(seconds=10 * 2 ** (number - 1) * 1.1 + 0.01)
        assert await ended(handle) == "green"
    assert [later - sooner for sooner, later in itertools.pairwise(looked)] == [11010, 22010, 44010]
    assert ran == ["before"]


@pytest.mark.req("R41")
async def test_a_plain_callable_will_do(quick_url: str, clock: MovableClock) -> None:
    found = iter([None, "green"])

    @durable
    async def waits() -> str:
        return await pause.poll(lambda: next(found), every=timedelta(seconds=10))  # type: ignore[arg-type]

    async with at_work(quick_url) as app:
        handle = await app.start("waits", waits)
        await seen(app, "waits", lambda r: r.is_paused)
        clock.advance(seconds=12)
        assert await ended(handle) == "green"


@pytest.mark.req("R41")
async def test_polling_gives_up_after_its_limit(quick_url: str, clock: MovableClock, tmp_path: Path) -> None:
    @durable
    async def waits(described: bool) -> str:
        async def never() -> str | None:
            return None

        check: Any = checks.file(tmp_path / "never") if described else never
        try:
            await pause.poll(check, every=timedelta(minutes=1), limit=timedelta(minutes=2), what="it")
        except TimedOut:
            return "gave up"
        return "found"

    async with at_work(quick_url) as app:
        for described in (True, False):
            handle = await app.start(f"waits {described}", waits, described)
            await paused(app, f"waits {described}", "external_dependency")
            for _ in range(3):
                clock.advance(minutes=1)
                await Pollers(app.tasks).round()
                await Timers(app.tasks).round()
            assert await ended(handle) == "gave up"


@pytest.mark.req("R41", "R44")
async def test_a_worker_checks_for_a_file_without_running_the_code(
    url: str, clock: MovableClock, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"

    @durable
    async def waits() -> int:
        await note("begun")
        found = await pause.poll(checks.file(flag), every=timedelta(seconds=10))
        return int(found["size"])

    async with at_work(url) as app:
        handle = await app.start("waits", waits)
        record = await paused(app, "waits", "external_dependency")
        assert record.pause and record.pause.payload["file"] == str(flag)
        first = record.pause.next_look_at
        assert first is not None and first >= record.pause.since + timedelta(seconds=10)
        clock.advance(seconds=12)
        later = await seen(app, "waits", lambda r: r.pause is not None and r.pause.next_look_at != first)
        assert later.is_paused and len(later.attempts) == 1
        (tmp_path / "new").write_text("green")
        (tmp_path / "new").rename(flag)  # whole from the first moment it is there
        clock.advance(seconds=12)
        assert await ended(handle) == 5
        assert len((await app.tasks.get("waits")).attempts) == 2  # type: ignore[union-attr]


# ── time ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R45", "R31")
async def test_a_wait_holds_nothing_and_fires_once_and_late(url: str, clock: MovableClock) -> None:
    @durable
    async def waits() -> str:
        await note("before")
        await pause.wait(hours=24)
        return await note("after")

    async with at_work(url) as app:
        handle = await app.start("waits", waits)
        record = await paused(app, "waits", "scheduled_wait")
        assert record.pause and record.pause.due_at == record.pause.since + timedelta(hours=24)
        assert not [one for one in record.attempts if one.ended_at is None]
    clock.advance(hours=30)  # the machine is off
    async with at_work(url) as app:
        assert await ended(handle) == "after"
        assert (await kinds(app, "waits")).count("due") == 1
    assert ran == ["before", "after"]


@pytest.mark.req("R45")
async def test_a_clock_that_jumps_fires_no_timer_twice_and_loses_none(quick_url: str, clock: MovableClock) -> None:
    @durable
    async def waits() -> str:
        await pause.wait(hours=1)
        await note("one")
        await pause.wait(hours=1)
        return await note("two")

    async with at_work(quick_url) as app:
        handle = await app.start("waits", waits)
        await paused(app, "waits", "scheduled_wait")
        clock.advance(minutes=61)
        await seen(app, "waits", lambda r: r.is_paused and ran == ["one"])
        clock.advance(hours=-1)  # somebody sets the clock back
        await Timers(app.tasks).round()
        assert (await seen(app, "waits", bool)).is_paused and ran == ["one"]
        clock.advance(hours=3)
        assert await ended(handle) == "two"
        assert (await kinds(app, "waits")).count("due") == 2
    assert ran == ["one", "two"]


async def test_the_moment_that_was_given_first_stands(quick_url: str, clock: MovableClock) -> None:
    @durable
    async def waits() -> str:
        await pause.until(datetime.fromtimestamp(clock.now_ms() / 1000, UTC) + timedelta(hours=1))
        return "done"

    async with at_work(quick_url) as app:
        handle = await app.start("waits", waits)
        await paused(app, "waits", "scheduled_wait")
        clock.advance(minutes=61)
        assert await ended(handle) == "done"


@pytest.mark.req("R46")
async def test_a_rate_limit_is_waited_for_and_what_one_was_told_the_others_heed(url: str, clock: MovableClock) -> None:
    asked: list[tuple[str, int]] = []

    @durable
    async def calls(name: str, retry_after: float) -> str:
        await pause.rate_limit(retry_after=retry_after, provider="api")
        asked.append((name, clock.now_ms()))
        return name

    async with at_work(url) as app:
        began = clock.now_ms()
        first = await app.start("first", calls, "first", 20.0)
        record = await paused(app, "first", "rate_limit")
        assert record.pause and record.pause.payload["provider"] == "api"
        second = await app.start("second", calls, "second", 5.0)
        await paused(app, "second", "rate_limit")
        clock.advance(seconds=19)
        await Timers(app.tasks).round()
        assert (await seen(app, "first", bool)).is_paused and (await seen(app, "second", bool)).is_paused
        clock.advance(seconds=4)
        assert {await ended(first), await ended(second)} == {"first", "second"}
        assert all(moment >= began + 20_000 for _, moment in asked)
        [(provider, hits, streak, reset_at, _)] = await app._store.query("read_rate_limits", namespace="default")
        assert (provider, hits, streak, reset_at) == ("api", 2, 2, began + 20_000)


@pytest.mark.req("R46")
async def test_a_provider_that_says_nothing_is_waited_for_longer_each_time_and_never_too_long(
    quick_url: str, clock: MovableClock
) -> None:
    waited: list[int] = []

    @durable
    async def calls() -> str:
        for _ in range(3):
            before = recorded.now()
            await pause.rate_limit(provider="api")
            waited.append(int((recorded.now() - before).total_seconds()))
        try:
            await pause.rate_limit(retry_after=100, provider="api", max_wait=timedelta(seconds=30))
        except RateLimited as refused:
            return refused.provider
        return ""

    async with at_work(quick_url) as app:
        handle = await app.start("calls", calls)
        for number in range(3):
            await seen(app, "calls", lambda r, n=number: r.is_paused and len(r.attempts) == n + 1)  # type: ignore[misc]
            clock.advance(seconds=2**number + 0.5)
        assert await ended(handle) == "api"
    assert waited[-3:] == [1, 2, 4]


# ── tasks and turns ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R47")
@pytest.mark.parametrize("on_failure", ["raise", "return"])
async def test_a_task_waits_for_another_whichever_way_that_ends(url: str, on_failure: Any) -> None:
    @durable
    async def follows(other: str) -> Any:
        try:
            return await pause.task(other, on_failure=on_failure)
        except TaskFailed as failed:
            return f"{failed.task_id} {failed.status} {failed.error}"

    async with at_work(url) as app:
        good = await app.start("after-good", follows, "good")
        bad = await app.start("after-bad", follows, "bad")
        record = await paused(app, "after-good", "external_dependency")
        assert record.pause and record.pause.payload["task"] == "good"
        await (await app.tasks.open("good")).complete({"answer": 42})
        await (await app.tasks.open("bad")).fail("no luck")
        assert await ended(good) == {"answer": 42}
        found = await ended(bad)
        error = {"message": "no luck"}
        assert found == (
            f"bad failed {error}" if on_failure == "raise" else {"id": "bad", "status": "failed", "error": error}
        )


async def test_a_task_that_would_wait_for_itself_is_told_so(quick_url: str) -> None:
    @durable
    async def waits() -> None:
        await pause.task("me")

    async with Perdure(quick_url) as app:
        with pytest.raises(InvalidInput, match="itself"):
            await app.run("me", waits)


@pytest.mark.req("R48")
async def test_tasks_take_turns_where_they_yield(quick_url: str) -> None:
    @durable
    async def talks(name: str) -> None:
        for number in range(3):
            await note(f"{name}{number}")
            await pause.yield_now()

    async with Perdure(quick_url) as app:
        handles = [await app.start(name, talks, name) for name in "abc"]
        async with app.worker(concurrency=1):
            for handle in handles:
                await ended(handle)
    assert ran == [f"{name}{number}" for number in range(3) for name in "abc"]


# ── the code around it ───────────────────────────────────────────────────────────────────────────


async def test_app_run_waits_for_its_own_timers_without_a_worker(quick_url: str, clock: MovableClock) -> None:
    @durable
    async def waits() -> str:
        await pause.wait(hours=1)
        return "done"

    async with Perdure(quick_url) as app:
        running = asyncio.create_task(app.run("waits", waits))
        await paused(app, "waits", "scheduled_wait")
        clock.advance(hours=1, seconds=1)
        assert await running == "done"


@pytest.mark.req("R34")
async def test_a_pause_that_the_code_cancels_is_over_in_every_replay(url: str) -> None:
    @step
    async def until_asked() -> None:
        uid = (await apps[0].tasks.handle("asks")).uid
        while not await apps[0]._store.query("read_pauses", uid=uid):
            await look_again()

    @durable
    async def asks() -> str:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(pause.input("Anybody there?", str))
            await until_asked()
            await note("nobody")
            asking.cancel()
        await pause.approval("Go on?")
        return "done"

    apps: list[Perdure] = []
    async with at_work(url) as app:
        apps.append(app)
        handle = await app.start("asks", asks)
        await paused(app, "asks", "human_approval")
        task = await app.tasks.handle("asks")
        with pytest.raises((NotFound, InvalidInput)):
            await task.answer("me", key="|pause.input#1")
        await task.approve(by="ada")
        assert await ended(handle) == "done"
        asked = [row[0] for row in await app._store.query("read_pauses", uid=task.uid)]
        assert len(asked) == 2, "a replay asks nothing again"
    assert ran == ["nobody"]


async def test_an_answer_reaches_code_whose_attempt_is_still_at_work(quick_url: str) -> None:
    asked, may_end = asyncio.Event(), asyncio.Event()

    @step
    async def long_work() -> str:
        asked.set()
        await may_end.wait()
        return "worked"

    @durable
    async def both() -> list[str]:
        async def asks() -> str:
            found = await pause.input("Your name?", str)
            may_end.set()
            return found

        return list(await asyncio.gather(long_work(), asks()))

    async with at_work(quick_url) as app:
        handle = await app.start("both", both)
        await asked.wait()
        task = await handle.task()
        async with asyncio.timeout(120):
            while not await app._store.query("read_pauses", uid=task.uid):
                await look_again()
        await task.answer("ada")
        assert await ended(handle) == ["worked", "ada"]
        assert len((await task.record()).attempts) == 1


async def test_several_questions_are_open_at_once_and_answered_in_any_order(quick_url: str) -> None:
    @durable
    async def asks() -> list[Any]:
        return list(
            await asyncio.gather(
                pause.input("one?", int), pause.approval("two?"), signals.next("three", str), pause.input("four?", int)
            )
        )

    async with at_work(quick_url) as app:
        handle = await app.start("asks", asks)
        await seen(app, "asks", lambda r: r.is_paused)
        task = await app.tasks.handle("asks")
        await task.signal("three", "3")
        await task.approve(by="ada")
        found = [row[0] for row in await app._store.query("read_pauses", uid=task.uid) if row[6] is None]
        assert len(found) == 2
        for path in found:
            await task.answer(1, key=path)
        result = await ended(handle)
        assert (result[0], result[2], result[3]) == (1, "3", 1)


@pytest.mark.req("R30")
async def test_pauses_are_refused_where_they_cannot_be(quick_url: str) -> None:
    @step
    async def asks() -> str:
        return await pause.input("inside a step?", str)

    @durable
    async def wrong() -> str:
        return await asks()

    async with Perdure(quick_url) as app:
        with pytest.raises(InvalidInput, match="inside a step"):
            await app.run("wrong", wrong)
