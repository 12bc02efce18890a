"""Who reads what the keeper answers: one loop by itself, else a thread for all."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from perdure._ground.bridge import drive
from perdure._runtime.keeper_client import client
from tests.runtime.kit import Place


async def told(here: client.Client) -> int:
    return int((await here.ask("status")).args["pid"])


@pytest.fixture
def here(place: Place) -> client.Client:
    return client.client_for(place.home)


def reading_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "perdure-keeper"}


def test_a_loop_that_waits_alone_reads_its_answers_itself(here: client.Client) -> None:
    before = reading_threads()

    async def ask() -> None:
        await told(here)
        assert await told(here) == here.about["pid"]

    asyncio.run(ask())
    assert reading_threads() <= before  # those of other connections may end meanwhile


@pytest.mark.req("R83")
def test_one_loop_after_another_goes_on_with_the_same_connection(here: client.Client) -> None:
    first = asyncio.run(told(here))
    for _ in range(3):
        assert asyncio.run(told(here)) == first


def test_blocking_code_inside_a_loop_that_is_held_up_gets_its_answers(here: client.Client) -> None:
    async def ask() -> None:
        await told(here)
        assert drive(told(here)) == await told(here)
        # A loop held up by a thread that needs the keeper too.
        answers: list[int] = []
        thread = threading.Thread(target=lambda: answers.append(asyncio.run(told(here))))
        thread.start()
        thread.join(30)
        assert answers == [here.about["pid"]]

    asyncio.run(ask())


def test_a_loop_that_stands_still_while_a_thread_reads_on_finds_the_next_keeper(
    here: client.Client, place: Place
) -> None:
    """The new connection may get the number of the old one: the loop must not mistake one for the other."""
    loop = asyncio.new_event_loop()
    try:
        first = loop.run_until_complete(told(here))
        for _ in range(3):
            pid = drive(told(here))  # a thread takes over, and sees the connection end
            os.kill(pid, signal.SIGKILL)
            assert drive(told(here)) != pid
            assert loop.run_until_complete(told(here)) != first
    finally:
        loop.close()


def test_what_is_asked_while_the_keeper_dies_is_asked_again(here: client.Client) -> None:
    async def ask() -> None:
        for _ in range(10):
            pid = await told(here)
            asked = [asyncio.ensure_future(told(here)) for _ in range(20)]
            await asyncio.sleep(0)
            os.kill(pid, signal.SIGKILL)
            assert len(await asyncio.gather(*asked)) == 20
            assert await told(here) != pid

    asyncio.run(ask())


def test_many_threads_and_loops_at_once_each_get_their_own_answers(here: client.Client) -> None:
    async def many() -> list[int]:
        return list(await asyncio.gather(*(told(here) for _ in range(30))))

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.extend(asyncio.run(many()))) for _ in range(4)]
    threads += [threading.Thread(target=lambda: found.extend(drive(told(here)) for _ in range(30))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 240 and len(set(found)) == 1
