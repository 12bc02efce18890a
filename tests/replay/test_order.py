"""Whatever finished first, a replay makes the same decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from perdure._durable.declare.functions import step
from tests.replay.kit import Played, play, play_again, until_rest


class Hands:
    """Ends the bodies of steps in the order a test wants."""

    def __init__(self) -> None:
        self._open: dict[Any, asyncio.Future[None]] = {}
        self.ran: list[Any] = []

    async def hold(self, what: Any) -> None:
        self.ran.append(what)
        self._open[what] = asyncio.get_running_loop().create_future()
        await self._open[what]

    async def end(self, *order: Any) -> None:
        for what in order:
            await until_rest()
            self._open.pop(what).set_result(None)
        await until_rest()


async def play_in_order(program: Callable[..., Any], hands: Hands, *order: Any) -> Played:
    """The first run, with its bodies ended in this order."""
    playing = asyncio.create_task(play(program))
    await hands.end(*order)
    return await playing


def make_fetch(hands: Hands) -> Any:
    @step
    async def fetch(what: str) -> str:
        await hands.hold(what)
        return what.upper()

    return fetch


async def check(program: Callable[[Any], Any], *order: str, expected: Any) -> None:
    """Live it gives what is expected; replayed it gives the same, and nothing runs."""
    hands = Hands()
    fetch = make_fetch(hands)

    async def main() -> Any:
        return await program(fetch)

    first = await play_in_order(main, hands, *order)
    assert first.result() == expected
    hands.ran.clear()
    for _ in range(3):
        again = await play_again(main, journal=first.journal)
        assert again.result() == expected
    assert hands.ran == []


async def test_as_completed_completes_in_the_order_of_the_first_run() -> None:
    async def program(fetch: Any) -> list[str]:
        return [await first for first in asyncio.as_completed([fetch(what) for what in "abcd"])]

    await check(program, "c", "a", "d", "b", expected=["C", "A", "D", "B"])


async def test_as_completed_over_a_set_has_no_order_to_lose() -> None:
    async def program(fetch: Any) -> list[str]:
        return [await first for first in asyncio.as_completed({fetch(what) for what in "abcd"})]

    await check(program, "d", "b", "c", "a", expected=["D", "B", "C", "A"])


async def test_wait_for_the_first_one_has_the_same_first_one() -> None:
    async def program(fetch: Any) -> list[str]:
        pending, seen = {asyncio.create_task(fetch(what)) for what in "abc"}, []
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            seen.append("".join(task.result() for task in done))
        return seen

    await check(program, "b", "c", "a", expected=["B", "C", "A"])


async def test_code_that_goes_through_a_set_of_finished_tasks_finds_the_same_order_again() -> None:
    names = [f"x{n}" for n in range(30)]

    async def program(fetch: Any) -> list[str]:
        tasks = {asyncio.create_task(fetch(what)) for what in names}
        done, _ = await asyncio.wait(tasks)
        return [task.result() for task in done]

    hands = Hands()
    fetch = make_fetch(hands)

    async def main() -> Any:
        return await program(fetch)

    first = await play_in_order(main, hands, *names)
    for _ in range(5):
        assert (await play_again(main, journal=first.journal)).result() == first.result()


async def test_a_queue_is_filled_in_the_same_order() -> None:
    async def program(fetch: Any) -> list[str]:
        queue: asyncio.Queue[str] = asyncio.Queue()

        async def produce(what: str) -> None:
            await queue.put(await fetch(what))

        async with asyncio.TaskGroup() as group:
            for what in "abc":
                group.create_task(produce(what))
            return [await queue.get() for _ in "abc"]

    await check(program, "c", "b", "a", expected=["C", "B", "A"])


async def test_a_lock_is_taken_in_the_same_order() -> None:
    async def program(fetch: Any) -> list[str]:
        lock, order = asyncio.Lock(), []

        async def branch(what: str) -> None:
            await fetch(what)
            async with lock:
                order.append(what)
                await fetch(what + "2")

        await asyncio.gather(*(branch(what) for what in "abc"))
        return order

    await check(program, "c", "b", "c2", "a", "b2", "a2", expected=["c", "b", "a"])


async def test_what_one_branch_hears_of_another_is_the_same() -> None:
    async def program(fetch: Any) -> list[str]:
        heard: list[str] = []

        async def branch(what: str) -> None:
            for part in "12":
                await fetch(what + part)
                heard.append(f"{what}{part} after {len(heard)}")

        await asyncio.gather(branch("a"), branch("b"))
        return heard

    await check(program, "b1", "b2", "a1", "a2", expected=["b1 after 0", "b2 after 1", "a1 after 2", "a2 after 3"])


async def test_a_failing_branch_of_a_task_group_ends_the_others_at_the_same_point() -> None:
    async def program(fetch: Any) -> list[str]:
        seen: list[str] = []

        async def fails() -> None:
            await fetch("bad")
            raise ValueError

        async def goes_on() -> None:
            for part in "12":
                seen.append(await fetch(part))

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(goes_on())
                group.create_task(fails())
        except* ValueError:
            seen.append("failed")
        return [*seen, await fetch("after")]

    await check(program, "1", "bad", "after", expected=["1", "failed", "AFTER"])


async def test_five_at_once_with_three_done_out_of_order_run_only_the_other_two() -> None:
    hands = Hands()
    fetch = make_fetch(hands)

    async def main() -> list[str]:
        return list(await asyncio.gather(*(fetch(what) for what in "abcde")))

    playing = asyncio.create_task(play(main))
    await hands.end("d", "a", "c")
    playing.cancel()
    first = await playing
    assert isinstance(first.error, asyncio.CancelledError)
    assert len(first.journal) == 3, "the end of the attempt is no cancellation of the code's own"

    hands.ran.clear()
    resumed = asyncio.create_task(play(main, journal=first.journal))
    await hands.end("e", "b")
    assert (await resumed).result() == ["A", "B", "C", "D", "E"]
    assert sorted(hands.ran) == ["b", "e"]


async def test_a_scope_that_sleeps_without_perdure_is_waited_for() -> None:
    hands = Hands()
    fetch = make_fetch(hands)
    gates: list[asyncio.Event] = []

    async def main() -> list[str]:
        heard: list[str] = []
        gate = asyncio.Event()
        gates.append(gate)

        async def late() -> None:
            await gate.wait()
            heard.append(await fetch("late"))

        async def early() -> None:
            heard.append(await fetch("early"))

        await asyncio.gather(late(), early())
        return heard

    playing = asyncio.create_task(play(main))
    await until_rest()
    gates[-1].set()
    await hands.end("late", "early")
    first = await playing

    playing = asyncio.create_task(play(main, journal=first.journal))
    await until_rest()
    gates[-1].set()
    assert (await playing).result() == ["LATE", "EARLY"]


async def test_results_are_handed_out_in_one_scope_without_yielding_to_the_loop() -> None:
    @step
    async def fetch(what: int) -> int:
        return what

    passes: list[int] = []

    async def main() -> int:
        loop, count = asyncio.get_running_loop(), 0

        def tick() -> None:
            nonlocal count
            count += 1
            loop.call_soon(tick)

        found = 0
        for what in range(50):
            found += await fetch(what)
            if what == 0:
                loop.call_soon(tick)
        passes.append(count)
        return found

    first = await play(main)
    await play_again(main, journal=first.journal)
    assert passes == [0, 0]


async def test_a_busy_loop_does_not_hold_up_the_order() -> None:
    """Others on the loop never rest; they are not this function's code."""
    busy = True

    async def spin() -> None:
        while busy:
            await asyncio.sleep(0)

    spinning = asyncio.create_task(spin())
    try:

        async def program(fetch: Any) -> list[str]:
            return [await first for first in asyncio.as_completed([fetch(what) for what in "abc"])]

        await check(program, "b", "c", "a", expected=["B", "C", "A"])
    finally:
        busy = False
        await spinning


async def test_a_result_nobody_comes_for_does_not_hold_up_the_others_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("perdure._durable.attempt.delivery_order.PATIENCE_SECONDS", 0.0)
    hands = Hands()
    fetch = make_fetch(hands)

    async def before() -> list[str]:
        return list(await asyncio.gather(fetch("a"), fetch("b")))

    async def after() -> list[str]:
        async def nothing() -> str:
            return "nothing"

        return list(await asyncio.gather(nothing(), nothing(), fetch("a")))

    first = await play_in_order(before, hands, "b", "a")
    assert type((await play(after, journal=first.journal)).error).__name__ == "ReplayDiverged"
