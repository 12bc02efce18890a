"""Each task of a durable function has a name that is the same in every run, whoever makes the task."""

from __future__ import annotations

import asyncio
import importlib.util
import random
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import pytest

from perdure._durable.attempt import scopes
from perdure._durable.attempt.scopes import ScopeTask, bind, current, install
from perdure._durable.declare.functions import step
from tests.replay.kit import play, play_again, until_rest

Factory = Any


@step
async def fetch(what: str) -> str:
    return what.upper()


async def branch(what: str) -> str:
    return await fetch(what)


async def several() -> list[str]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(branch(what)) for what in "ab"]
    return [*(task.result() for task in tasks), *(await asyncio.gather(branch("c"), fetch("d")))]


async def test_a_task_is_named_by_its_coroutine_and_its_number_in_the_scope_that_made_it() -> None:
    played = await play(several)
    assert sorted(played.paths) == ["/branch#1|fetch#1", "/branch#2|fetch#1", "/branch#3|fetch#1", "/fetch#1|fetch#1"]


async def test_a_task_of_a_task_is_named_inside_it() -> None:
    async def outer() -> str:
        return await asyncio.create_task(branch("a"))

    async def main() -> str:
        return await asyncio.create_task(outer())

    played = await play(main)
    assert played.paths == ["/outer#1/branch#1|fetch#1"]


async def test_the_number_of_a_call_is_fixed_when_its_coroutine_first_runs() -> None:
    async def main() -> list[str]:
        first, second = fetch("made first"), fetch("made second")
        return [await second, await first]

    played = await play(main)
    assert played.result() == ["MADE SECOND", "MADE FIRST"]
    _, first = played.journal[0]
    assert first.path == "|fetch#1" and first.digest.endswith(b"made second")
    assert (await play_again(main, journal=played.journal)).result() == played.result()


async def test_tasks_inside_a_step_take_no_number() -> None:
    @step
    async def inside(many: int) -> int:
        await asyncio.gather(*(branch(str(n)) for n in range(many)))
        return many

    async def main() -> str:
        await inside(3)
        return await asyncio.create_task(branch("x"))

    played = await play(main)
    assert played.paths == ["|inside#1", "/branch#1|fetch#1"]


async def test_a_library_that_makes_a_random_number_of_tasks_changes_nothing() -> None:
    async def connect() -> None:
        await asyncio.sleep(0)

    async def main() -> list[str]:
        found = []
        for what in "abc":
            background = [asyncio.create_task(connect()) for _ in range(random.randint(0, 5))]
            found.append(await asyncio.create_task(branch(what)))
            await asyncio.gather(*background)
        return found

    played = await play(main)
    for _ in range(5):
        assert (await play_again(main, journal=played.journal)).result() == ["A", "B", "C"]


async def test_the_helper_task_of_wait_for_shares_its_parents_scope() -> None:
    async def main() -> list[str]:
        first = await asyncio.wait_for(fetch("a"), 60)
        second = await asyncio.wait_for(branch("b"), 60)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(branch("never"), 0)
        return [first, second, await asyncio.create_task(branch("c"))]

    played = await play(main)
    # As under 3.12 and later, where wait_for makes no task: a journal of one replays under the other.
    assert played.paths == ["|fetch#1", "|fetch#2", "/branch#1|fetch#1"]
    assert (await play_again(main, journal=played.journal)).result() == ["A", "B", "C"]


async def test_a_task_that_wait_for_is_given_keeps_its_own_scope() -> None:
    async def main() -> str:
        return await asyncio.wait_for(asyncio.create_task(branch("a")), 60)

    assert (await play(main)).paths == ["/branch#1|fetch#1"]


async def test_a_context_that_is_passed_along_still_gets_the_scope() -> None:
    import contextvars

    mine: contextvars.ContextVar[str] = contextvars.ContextVar("mine", default="")

    async def reads() -> str:
        return mine.get() + await fetch("x")

    async def main() -> str:
        context = contextvars.copy_context()
        context.run(mine.set, "hello ")
        return await asyncio.create_task(reads(), context=context)

    played = await play(main)
    assert played.result() == "hello X"
    assert played.paths == ["/reads#1|fetch#1"]


# ── whatever factory the loop has ────────────────────────────────────────────────────────────────


def _plain(loop: Any, coro: Any, **how: Any) -> Any:
    return asyncio.Task(coro, loop=loop, **how)


def _before_3_11(loop: Any, coro: Any) -> Any:
    return asyncio.Task(coro, loop=loop)


def _picky(loop: Any, coro: Any, *, name: str | None = None, context: Any = None) -> Any:
    return asyncio.Task(coro, loop=loop, name=name, context=context)


FACTORIES: dict[str, Factory] = {"none": None, "plain": _plain, "before 3.11": _before_3_11, "picky": _picky}
if sys.version_info >= (3, 12):
    FACTORIES["eager"] = asyncio.eager_task_factory


@pytest.mark.parametrize("name", FACTORIES)
async def test_an_existing_task_factory_is_wrapped(name: str) -> None:
    asyncio.get_running_loop().set_task_factory(FACTORIES[name])
    played = await play(several)
    assert sorted(played.paths) == ["/branch#1|fetch#1", "/branch#2|fetch#1", "/branch#3|fetch#1", "/fetch#1|fetch#1"]
    assert (await play_again(several, journal=played.journal)).result() == ["A", "B", "C", "D"]


async def test_keyword_arguments_of_later_pythons_are_passed_on() -> None:
    seen: list[dict[str, Any]] = []

    def factory(loop: Any, coro: Any, **how: Any) -> Any:
        seen.append({name: value for name, value in how.items() if name != "context"})
        how.pop("invented_later", None)
        return asyncio.Task(coro, loop=loop, **how)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory)  # type: ignore[arg-type]

    async def main() -> str:
        made: Any = loop.get_task_factory()
        found: str = await made(loop, branch("a"), name="mine", invented_later=True)
        return found

    played = await play(main)
    assert played.result() == "A" and played.paths == ["/branch#1|fetch#1"]
    assert {"name": "mine", "invented_later": True} in seen


async def test_a_factory_is_wrapped_once_and_leaves_other_tasks_alone() -> None:
    loop = asyncio.get_running_loop()
    install(loop)
    first = loop.get_task_factory()
    install(loop)
    assert loop.get_task_factory() is first
    outside = asyncio.create_task(asyncio.sleep(0), name="named")
    assert type(outside) is asyncio.Task and outside.get_name() == "named"
    await outside


async def test_tasks_of_a_durable_function_have_names_and_can_be_put_into_sets() -> None:
    async def main() -> tuple[str, bool, int]:
        task = asyncio.create_task(branch("a"), name="mine")
        other = asyncio.create_task(branch("a"))
        await asyncio.wait({task, other})
        return task.get_name(), isinstance(task, ScopeTask), len({task, other, task})

    assert (await play(main)).result() == ("mine", True, 2)


_LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
if importlib.util.find_spec("uvloop") is not None:
    import uvloop

    _LOOPS["uvloop"] = uvloop.new_event_loop


@pytest.mark.parametrize("name", _LOOPS)
def test_the_order_holds_on_every_loop_there_is(name: str) -> None:
    async def main() -> list[str]:
        return [await first for first in asyncio.as_completed([branch(what) for what in "abcdef"])]

    async def both() -> None:
        first = await play(main)
        assert sorted(first.result()) == list("ABCDEF")
        for _ in range(3):
            assert (await play_again(main, journal=first.journal)).result() == first.result()

    with asyncio.Runner(loop_factory=_LOOPS[name]) as runner:
        runner.run(both())


if importlib.util.find_spec("anyio") is not None:

    async def test_task_groups_of_anyio_are_scopes_too() -> None:
        import anyio

        async def main() -> list[str]:
            found: list[str] = []

            async def child(what: str) -> None:
                found.append(await fetch(what))

            async with anyio.create_task_group() as group:
                for what in "abc":
                    group.start_soon(child, what)
            with anyio.move_on_after(0.01):
                await forever()
            return [*found, await fetch("after")]

        @step
        async def forever() -> None:
            await asyncio.get_running_loop().create_future()

        first = await play(main)
        assert first.result() == ["A", "B", "C", "AFTER"]
        assert (await play_again(main, journal=first.journal)).result() == first.result()


# ── threads ──────────────────────────────────────────────────────────────────────────────────────


@step
def look_up(what: str) -> str:
    return what.upper()


async def test_bind_carries_a_scope_of_its_own_into_a_thread() -> None:
    def work(what: str, found: list[str]) -> None:
        found.append(look_up(what))

    async def main() -> list[str]:
        found: list[list[str]] = [[] for _ in "abc"]
        threads = [
            threading.Thread(target=bind(work), args=(what, into)) for what, into in zip("abc", found, strict=True)
        ]
        for thread in reversed(threads):
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        return [what for into in found for what in into]

    played = await play(main)
    assert played.result() == ["A", "B", "C"]
    assert sorted(played.paths) == ["/work#1|look_up#1", "/work#2|look_up#1", "/work#3|look_up#1"]
    assert (await play_again(main, journal=played.journal)).result() == ["A", "B", "C"]


async def test_bind_inside_a_step_and_without_a_task_only_carries_what_is_there() -> None:
    @step
    async def inside() -> str:
        return await asyncio.get_running_loop().run_in_executor(None, bind(look_up), "x")

    async def main() -> str:
        return await inside()

    assert (await play(main)).paths == ["|inside#1"]
    assert bind(look_up)("x") == "X"
    assert current.get() is None


async def test_a_thread_of_to_thread_works_in_the_scope_that_awaits_it() -> None:
    async def main() -> str:
        return await asyncio.to_thread(look_up, "a") + await asyncio.to_thread(look_up, "b")

    played = await play(main)
    assert played.paths == ["|look_up#1", "|look_up#2"]
    assert (await play_again(main, journal=played.journal)).result() == "AB"


# ── the end ──────────────────────────────────────────────────────────────────────────────────────


async def test_what_a_function_leaves_behind_ends_with_it() -> None:
    ends: list[str] = []

    async def left_behind() -> None:
        try:
            await fetch("a")
            await asyncio.get_running_loop().create_future()
        finally:
            ends.append("ended")

    async def main() -> str:
        asyncio.create_task(left_behind())  # noqa: RUF006
        await until_rest()
        return "done"

    assert (await play(main)).result() == "done"
    assert ends == ["ended"]


async def test_a_task_that_never_made_a_call_may_be_a_librarys_and_stays() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def keep_alive() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> str:
        tasks.append(asyncio.create_task(keep_alive()))
        return await fetch("a")

    assert (await play(main)).result() == "A"
    assert not tasks[0].done()
    tasks[0].cancel()


async def test_what_is_left_behind_can_start_nothing_even_if_it_does_not_want_to_end() -> None:
    ran: list[str] = []
    may_end = asyncio.Event()

    @step
    async def work(what: str) -> None:
        ran.append(what)

    async def stubborn() -> None:
        await work("first")
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ran.append("cancelled")
            await work("after the end")

    async def main() -> None:
        asyncio.create_task(stubborn())  # noqa: RUF006
        await may_end.wait()

    playing = asyncio.create_task(play(main))
    await until_rest()
    may_end.set()
    await playing
    assert ran == ["first", "cancelled"]


async def test_a_step_that_ends_after_the_function_is_not_recorded() -> None:
    may_end = asyncio.Event()

    @step
    async def stubborn() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return "all the same"
        return "never"

    async def main() -> str:
        asyncio.create_task(stubborn())  # noqa: RUF006
        await may_end.wait()
        return "done"

    playing = asyncio.create_task(play(main))
    await until_rest()
    may_end.set()
    played = await playing
    assert played.result() == "done" and played.journal == []


async def test_a_branch_that_still_goes_on_at_the_end_may_have_results_it_has_not_asked_for() -> None:
    events: list[tuple[asyncio.Event, asyncio.Event]] = []

    async def main() -> str:
        late_may, main_may = asyncio.Event(), asyncio.Event()
        events.append((late_may, main_may))

        async def late() -> None:
            await fetch("at once")
            await late_may.wait()
            await fetch("late")

        asyncio.create_task(late())  # noqa: RUF006
        await main_may.wait()
        return "done"

    playing = asyncio.create_task(play(main))
    await until_rest()
    events[-1][0].set()
    await until_rest()
    events[-1][1].set()
    first = await playing
    assert len(first.journal) == 2

    playing = asyncio.create_task(play(main, journal=first.journal))
    await until_rest()
    events[-1][1].set()
    assert (await playing).result() == "done"


def test_tasks_of_one_path_do_not_meet_in_the_set_that_asyncio_keeps_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand attempts have a main line each, and every one of them has the same path."""
    seen: list[int] = []
    make = scopes._make_task

    def registering(task: ScopeTask, *args: Any, **how: Any) -> None:
        seen.append(hash(task))
        make(task, *args, **how)

    async def main() -> list[int]:
        monkeypatch.setattr(scopes, "_make_task", registering)
        loop = asyncio.get_running_loop()
        tasks = [ScopeTask(asyncio.sleep(0), "", loop, copy_context()) for _ in range(10)]
        await asyncio.wait(tasks)
        return [hash(task) for task in tasks]

    assert len(set(asyncio.run(main()))) == 1
    assert len(set(seen)) == 10
