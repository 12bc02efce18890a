"""Starting tasks and holding on to them: handles, workers, children, signals."""

from __future__ import annotations

import asyncio
import gc
import weakref
from datetime import timedelta
from typing import Any

import pytest

from perdure import Perdure, signals
from perdure._durable import DidNotHappen, carry_over, durable, effect, span, step
from perdure._durable.attempt.scopes import current_attempt
from perdure._durable.declare import versions
from perdure.errors import Conflict, InvalidInput, InvalidTransition, NotStorable, TaskFailed, TimedOut
from tests.durable.effects_kit import wait_until
from tests.support.fixtures import emptied_for_each_test

ran: list[str] = []


_nothing_ran = emptied_for_each_test(ran)


@step
async def double(n: int) -> int:
    ran.append(f"double {n}")
    return n * 2


@durable
async def doubling(n: int) -> int:
    return await double(n)


@durable
async def failing(text: str) -> None:
    raise ValueError(text)


async def paused(app: Perdure, id: str) -> None:
    """Return when the task is paused: the store is asked, as another process would."""
    await app.tasks.wait_for(id, status="paused")


@pytest.mark.req("R147")
async def test_run_gives_the_result_and_running_the_same_id_again_does_nothing_again(url):
    async with Perdure(url) as app:
        assert await app.run("job", doubling, 21) == 42
        assert await app.run("job", doubling, 21) == 42
        assert ran == ["double 21"]


async def test_an_attempt_that_is_over_leaves_nothing_to_the_garbage_collector(quick_url):
    """A thousand short tasks would otherwise have it look through all there is, again and again."""
    seen: list[weakref.ref[Any]] = []

    @durable(name="watched attempt")
    async def watched(n: int) -> int:
        attempt = current_attempt()
        seen.extend(weakref.ref(part) for part in (attempt, attempt.gate, attempt.cursor, attempt.fence))
        return await double(n)

    async with Perdure(quick_url) as app:
        gc.disable()
        try:
            assert await app.run("job", watched, 1) == 2
            await asyncio.sleep(0)  # the loop's own last look at the task
            assert [ref() for ref in seen[:3]] == [None, None, None]
            await wait_until(lambda: seen[3]() is None)  # the committer's thread lets go of its writes
        finally:
            gc.enable()


async def test_branches_whose_results_were_put_in_order_leave_nothing_to_the_garbage_collector_either(quick_url):
    gates: list[weakref.ref[Any]] = []

    @durable(name="watched branches")
    async def branches(n: int) -> list[int]:
        gates.append(weakref.ref(current_attempt().gate))
        return await asyncio.gather(double(n), double(n + 1))

    async with Perdure(quick_url) as app:
        gc.disable()
        try:
            assert await app.run("job", branches, 1) == [2, 4]
            await asyncio.sleep(0)  # the loop's own last look at the task
            assert gates[0]() is None
        finally:
            gc.enable()


async def test_an_id_stands_for_one_call_of_one_function(url):
    async with Perdure(url) as app:
        await app.run("job", doubling, 21)
        with pytest.raises(Conflict, match="other arguments"):
            await app.run("job", doubling, 22)
        with pytest.raises(Conflict, match="cannot run 'failing' too"):
            await app.run("job", failing, "x")
        await app.tasks.open("plain")
        with pytest.raises(Conflict, match="has no durable function"):
            await app.run("plain", doubling, 1)


async def test_arguments_that_cannot_be_kept_are_refused_by_name_and_nothing_is_started(url):
    async with Perdure(url) as app:
        with pytest.raises(NotStorable) as caught:
            await app.run("job", doubling, object())  # type: ignore[arg-type]
        assert caught.value.path == "n" and await app.tasks.get("job") is None
        with pytest.raises(TypeError):
            await app.run("job", doubling, 1, 2)  # type: ignore[call-arg]


async def test_a_failure_is_raised_and_kept_with_the_task(url):
    async with Perdure(url) as app:
        for _ in range(2):
            with pytest.raises(ValueError, match="broken"):
                await app.run("job", failing, "broken")
        record = await app.tasks.get("job")
        assert record is not None and record.status == "failed" and record.error["message"] == "broken"


@pytest.mark.req("R106", "R112")
class OutOfStock(Exception):
    pass


@step(raises=[OutOfStock])
async def reserve(item: str) -> None:
    raise OutOfStock(item, 3)


@durable
async def reserving(item: str) -> None:
    await reserve(item)


@effect
async def never_sent() -> None:
    raise DidNotHappen("no stamp")


@durable
async def never_sending() -> None:
    await never_sent()


@pytest.mark.parametrize(
    "function, args, error", [(reserving, ("pen",), OutOfStock), (never_sending, (), DidNotHappen)]
)
async def test_a_declared_exception_that_ended_a_task_is_raised_whenever_its_result_is_asked_for(
    url, function, args, error
):
    async with Perdure(url) as app:
        seen = []
        for _ in range(2):
            with pytest.raises(error) as caught:
                await app.run("t", function, *args)
            seen.append(caught.value.args)
        with pytest.raises(error) as caught:
            await (await app.start("t", function, *args)).result()
        assert seen == [caught.value.args] * 2

        @durable(name=f"waits for {function.name}")
        async def parent() -> str:
            try:
                await (await app.start("t", function, *args)).result()
            except error as raised:
                return str(raised)
            return ""

        assert await app.run("parent", parent) == str(caught.value)


async def test_a_worker_carries_on_what_was_started_before_it_came(url):
    async with Perdure(url) as app:
        handle = await app.start("job", doubling, 4)
        with pytest.raises(TimedOut):
            await handle.result(timeout=timedelta(0))
        async with app.worker():
            assert await handle.result() == 8
        record = await (await handle.task()).record()
        assert record.status == "completed" and len(record.attempts) == 1


async def test_a_worker_leaves_alone_what_it_does_not_know(url):
    async with Perdure(url) as app:
        known = await app.start("known", doubling, 1)
        stranger = durable(name="somewhere.else")(doubling.function)
        await app.start("unknown", stranger, 1)
        versions._known.pop(("somewhere.else", 1))
        async with app.worker():
            assert await known.result() == 2
        record = await app.tasks.get("unknown")
        assert record is not None and record.status == "running" and not record.attempts


async def test_a_workers_queue_is_its_own(url):
    async with Perdure(url) as app:
        slow = await app.start("slow", doubling.options(queue="slow"), 1)
        fast = await app.start("fast", doubling, 2)
        async with app.worker():
            assert await fast.result() == 4
        assert (await (await slow.task()).record()).status == "running"
        async with app.worker(queues=["slow"]):
            assert await slow.result() == 2


@pytest.mark.req("R141")
async def test_children_are_started_once_and_their_results_are_recorded_in_the_parent(url):
    async with Perdure(url) as app:

        @durable
        async def parent(count: int) -> list[int]:
            handles = [await app.start(f"child-{n}", doubling, n) for n in range(count)]
            return [await handle.result() for handle in handles]

        async with app.worker():
            assert await (await app.start("parent", parent, 4)).result() == [0, 2, 4, 6]
        assert sorted(ran) == [f"double {n}" for n in range(4)]
        kept = await app.tasks.get("parent")
        child = await app.tasks.handle("child-0")
        rows = await app._store.query("get_call", uid=child.uid)
        assert kept is not None and rows[0][5] == kept.uid


async def test_a_failed_child_raises_in_its_parent(url):
    async with Perdure(url) as app:

        @durable
        async def parent() -> str:
            try:
                await (await app.start("child", failing, "no good")).result()
            except ValueError as error:
                return f"child failed: {error}"
            return "?"

        async with app.worker():
            assert await (await app.start("parent", parent)).result() == "child failed: no good"


async def test_signals_are_taken_in_order_whether_they_come_early_or_late(url):
    @durable
    async def listening() -> list[str]:
        return [await signals.next("word", str) for _ in range(3)]

    async with Perdure(url) as app:
        handle = await app.start("job", listening)
        task = await handle.task()
        await task.signal("word", "one")
        await task.signal("other", "not for it")
        async with app.worker():
            await paused(app, "job")
            await task.signal("word", "two")
            await asyncio.sleep(0)
            await task.signal("word", "three")
            assert await handle.result() == ["one", "two", "three"]
        with pytest.raises(InvalidTransition):
            await task.signal("word", "too late")


async def test_a_cancelled_tasks_handle_says_so(url):
    async with Perdure(url) as app:
        handle = await app.start("job", doubling, 1)
        await (await handle.task()).cancel()
        with pytest.raises(TaskFailed, match="cancelled"):
            await handle.result()


async def test_carry_over_begins_a_new_line_with_new_arguments_and_a_short_journal(url):
    @durable
    async def rounds(n: int, total: int) -> int:
        total += await double(n)
        if n < 3:
            await carry_over(n + 1, total=total)
        return total

    async with Perdure(url) as app:
        assert await app.run("job", rounds, 1, 0) == 2 + 4 + 6
        assert ran == ["double 1", "double 2", "double 3"]
        task = await app.tasks.open("job")
        lines = [await app._store.query("read_journal", uid=task.uid, line=line) for line in (1, 2, 3)]
        assert [len(line) for line in lines] == [1, 2, 2]  # the first of a later line says what was spent before


@pytest.mark.req("R6")
async def test_a_task_that_carried_over_is_attached_to_by_the_call_that_started_it(url):
    @durable(name="rounds with a total")
    async def rounds(n: int, total: int = 0) -> int:
        total += await double(n)
        if n < 3:
            await carry_over(n + 1, total)
        return total

    async with Perdure(url) as app:
        assert await app.run("rounds", rounds, 1) == 12
        assert await app.run("rounds", rounds, 1) == 12
        assert await app.run("rounds", rounds, n=1, total=0) == 12
        assert await (await app.start("rounds", rounds, 3, 6)).result() == 12  # as it stands now
        with pytest.raises(Conflict, match="other arguments"):
            await app.run("rounds", rounds, 2)
        assert ran == ["double 1", "double 2", "double 3"]


async def test_a_task_that_was_upgraded_is_attached_to_by_any_call_of_its_function(url, monkeypatch):
    monkeypatch.setattr(versions, "_known", {})

    @durable(name="growing")
    async def old(n: int) -> int:
        return await signals.next("go", int) + n

    async with Perdure(url) as app:
        handle = await app.start("grown", old, 1)
        async with app.worker():
            await paused(app, "grown")
        versions._known.clear()

        @durable(name="growing", version=2, upgrade=lambda n: (n + 100,))
        async def new(n: int) -> int:
            return n

        await (await handle.task()).resume()
        assert await app.run("grown", new, 1) == 101
        assert await app.run("grown", new, 1) == 101


@pytest.mark.parametrize(
    "again", [((1,), {"tags": {"b": 2, "a": 1}}), ((), {"n": 1, "tags": {"a": 1, "b": 2}, "o": 0})]
)
async def test_the_same_call_may_be_written_in_another_way(quick_url, again):
    @durable(name="spelled")
    async def spelled(n: int, o: int = 0, *, tags: dict[str, int]) -> int:
        return n

    args, kwargs = again
    async with Perdure(quick_url) as app:
        assert await app.run("spelled", spelled, 1, tags={"a": 1, "b": 2}) == 1
        assert await app.run("spelled", spelled, *args, **kwargs) == 1
        with pytest.raises(Conflict, match="other arguments"):
            await app.run("spelled", spelled, 1, 2, tags={"a": 1, "b": 2})


@pytest.mark.req("R21")
async def test_a_span_leaves_one_checkpoint_with_its_name_also_when_it_is_replayed(url):
    @durable
    async def thinking() -> str:
        async with span("research"):
            await double(1)
        async with span("writing"):
            await double(2)
        return await signals.next("go", str)

    async with Perdure(url) as app:
        handle = await app.start("job", thinking)
        async with app.worker():
            await paused(app, "job")
            await (await handle.task()).signal("go", "on")
            assert await handle.result() == "on"
        labels = [checkpoint.label async for checkpoint in (await handle.task()).checkpoints()]
        assert labels == ["research", "writing"]


async def test_a_child_started_the_wrong_way_round_is_refused_in_words_that_say_so(url):
    async with Perdure(url) as app:

        @durable(name="parent_wrong_way_round")
        async def parent() -> str:
            with pytest.raises(InvalidInput, match="is given where the task's id belongs"):
                await app.start(failing, "child", "broken")  # type: ignore[arg-type]
            return "told"

        assert await app.run("job", parent) == "told"
        assert await app.tasks.get("child") is None
