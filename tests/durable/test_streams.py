"""Text that arrives in pieces is kept as it arrives; after a crash only the rest is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure._durable import Retry, durable, step
from perdure._durable.streams.stream_reader import follow_stream, read_stream
from perdure._durable.streams.stream_writer import LARGEST_BATCH, Marker, Prefix
from perdure._durable.streams.streamed_calls import stream
from perdure.errors import InvalidInput, NotFound
from tests.durable.kept_kit import World, go_on, kill
from tests.support.processes import Link, nursery, say
from tests.torture.kills import Home

PIECES = [f"{number:03d}{'·' * 1021}" for number in range(100)]
WHOLE = "".join(PIECES)
AT_ONCE = Retry(attempts=3, wait=timedelta(0))


# ── a crash ──────────────────────────────────────────────────────────────────────────────────────


@durable
async def answering(folder: str) -> str:
    world = World(Path(folder))

    async def model(prefix: Prefix) -> AsyncIterator[str]:
        world.note(f"{len(prefix)} {prefix.marker} {prefix.for_model()}", "prompts")
        for number in range(len(prefix) // 1024, 100):
            world.may_die(number)
            world.note(number, "generated")
            yield PIECES[number]

    text = ""
    async for piece in stream("answer", model):
        world.note(piece[:3], "seen")
        text += piece
    world.note("attempt over", "seen")
    return text


async def run_answering(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("answering", answering, str(folder))


@pytest.mark.req("R86", "R118")
def test_a_stream_killed_at_sixty_percent_is_asked_for_the_rest_only(home: Home, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.die_at(60)
    with nursery() as children:
        kill(children, run_answering, home, tmp_path)
        assert go_on(children, run_answering, home, tmp_path) == WHOLE
    first, second = world.notes("prompts")
    kept = int(second.split()[0])
    assert first.split()[:2] == ["0", "None"]
    assert 60 * 1024 - LARGEST_BATCH <= kept <= 60 * 1024
    assert second.split()[1] == "RECOVERED_FROM_PARTIAL"
    assert f"[RECOVERED_FROM_PARTIAL] Your answer was cut off after {kept} characters" in second
    assert world.notes("generated") == [str(n) for n in [*range(60), *range(kept // 1024, 100)]]


@pytest.mark.req("R86")
def test_the_code_gets_each_piece_once_and_cut_in_the_same_places_again(home: Home, tmp_path: Path) -> None:
    with nursery() as children:
        kill(children, run_answering, home, tmp_path, at="stream.flushed", count=3)
        seen = len(World(tmp_path).notes("seen"))
        go_on(children, run_answering, home, tmp_path)
    numbers = [f"{number:03d}" for number in range(100)]
    assert World(tmp_path).notes("seen") == [*numbers[:seen], *numbers, "attempt over"]


@pytest.mark.req("R118")
def test_a_stream_whose_process_died_is_never_taken_for_finished(home: Home, tmp_path: Path) -> None:
    World(tmp_path).die_at(60)

    async def look() -> Any:
        async with home.open() as app:
            return await read_stream(app, "answering", "answer")

    with nursery() as children:
        kill(children, run_answering, home, tmp_path)
        found = asyncio.run(look())
        assert WHOLE.startswith(found.text) and found.text
        # Its lease is not free, but nobody has taken the task over yet either.
        assert not found.is_complete
        go_on(children, run_answering, home, tmp_path)
        found = asyncio.run(look())
    assert (found.text, found.is_complete, found.marker, found.offset) == (WHOLE, True, None, len(WHOLE))


# ── readers elsewhere ────────────────────────────────────────────────────────────────────────────

LINKS: list[Link] = []


@durable
async def telling(words: int) -> str:
    async def model(prefix: Prefix) -> AsyncIterator[str]:
        for number in range(len(prefix.split()), words):
            say(LINKS[0], number)
            await asyncio.to_thread(LINKS[0].recv)
            yield f"word{number} "

    return "".join([piece async for piece in stream("tale", model)])


async def tell(link: Link, home: Home) -> str:
    LINKS[:] = [link]
    async with home.open() as app:
        return await app.run("telling", telling, 6)


@pytest.mark.req("R86")
def test_a_reader_elsewhere_follows_through_a_crash_without_gap_or_repetition(home: Home) -> None:
    asyncio.run(_follow_through_a_crash(home))


async def _follow_through_a_crash(home: Home) -> None:
    async with home.open() as app:
        with nursery() as children:
            teller = children.start(tell, home)
            assert teller.heard() == 0
            parts = follow_stream(app, "telling", "tale")
            read = []
            for number in range(3):
                assert teller.ask() == number + 1  # said before the next piece is asked for
                read.append(await anext(parts))
            teller.kill()
            heir = children.start(tell, home)
            assert heir.heard() == 3
            for number in range(3, 6):
                if number < 5:
                    assert heir.ask() == number + 1
                else:
                    heir.tell()
                read.append(await anext(parts))
            read += [part async for part in parts]
            assert heir.heard() == "".join(f"word{n} " for n in range(6))
    assert "".join(part.text for part in read) == "".join(f"word{n} " for n in range(6))
    assert [part.offset for part in read] == sorted(part.offset for part in read)
    assert read[-1].is_complete and not read[0].is_complete
    assert read[3].marker is Marker.RECOVERED_FROM_PARTIAL


async def test_a_reader_goes_on_by_its_offset(quick_home: Home) -> None:
    @durable
    async def two() -> str:
        return "".join([piece async for piece in stream("text", _pieces("abc", "def"))])

    async with quick_home.open() as app:
        await app.run("two", two)
        assert (await read_stream(app, "two", "text", after=2)).text == "cdef"
        assert (await read_stream(app, "two", "text", after=6)).text == ""
        assert [part.text async for part in follow_stream(app, "two", "text", after=4)] == ["ef"]
        with pytest.raises(NotFound):
            await read_stream(app, "two", "other")


async def test_streams_of_one_name_are_told_apart_by_number(quick_home: Home) -> None:
    @durable
    async def turns() -> None:
        for turn in "abc":
            async for _ in stream("turn", _pieces(turn)):
                pass

    async with quick_home.open() as app:
        await app.run("turns", turns)
        assert (await read_stream(app, "turns", "turn")).text == "c"
        assert [(await read_stream(app, "turns", "turn", number=n)).text for n in (1, 2, 3)] == ["a", "b", "c"]


def _pieces(*pieces: str, fail: Exception | None = None) -> Any:
    async def produce(prefix: Prefix) -> AsyncIterator[str]:
        for piece in pieces:
            yield piece
        if fail is not None:
            raise fail

    return produce


# ── sources that fail ────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R118")
async def test_a_source_that_falls_silent_is_asked_for_the_rest(quick_home: Home) -> None:
    prefixes: list[Prefix] = []

    async def model(prefix: Prefix) -> AsyncIterator[str]:
        prefixes.append(prefix)
        if not prefix:
            yield "half "
            await asyncio.Event().wait()
        yield "whole"

    @durable
    async def asking() -> str:
        return "".join([p async for p in stream("a", model, silence=timedelta(milliseconds=20), retry=AT_ONCE)])

    async with quick_home.open() as app:
        assert await app.run("asking", asking) == "half whole"
    assert [(str(p), p.marker) for p in prefixes] == [("", None), ("half ", Marker.TIMEOUT_PARTIAL)]
    assert "fell silent after 5 characters" in prefixes[1].for_model()


@pytest.mark.req("R118")
async def test_a_stream_that_timed_out_is_partial_and_says_so(quick_home: Home) -> None:
    found = []

    @durable
    async def asking() -> str:
        answer = stream("a", _pieces("half", fail=TimeoutError("no more")))
        try:
            async for _ in answer:
                pass
        except TimeoutError as error:
            found.append(str(error))
        assert not answer.is_complete
        return f"{answer.marker}: {answer.text}"

    async with quick_home.open() as app:
        assert await app.run("asking", asking) == "TIMEOUT_PARTIAL: half"
        part = await read_stream(app, "asking", "a")
    assert (part.text, part.is_complete, part.marker) == ("half", False, Marker.TIMEOUT_PARTIAL)
    assert found == ["no more"]


async def test_a_step_that_is_tried_again_goes_on_with_what_its_stream_had(quick_home: Home) -> None:
    prefixes = []

    async def model(prefix: Prefix) -> AsyncIterator[str]:
        prefixes.append(str(prefix))
        yield f"{len(prefixes)} "
        if len(prefixes) < 3:
            raise ConnectionError("reset")

    @step(retry=AT_ONCE)
    async def ask() -> str:
        return "".join([piece async for piece in stream("a", model)])

    @durable
    async def asking() -> str:
        return await ask()

    async with quick_home.open() as app:
        assert await app.run("asking", asking) == "1 2 3 "
    assert prefixes == ["", "1 ", "1 2 "]


# ── leaving early, replay ────────────────────────────────────────────────────────────────────────


@step(flush=True)
async def _use(folder: str, piece: str) -> str:
    World(Path(folder)).note(f"used {piece}")
    return piece


@durable
async def leaving(folder: str) -> str:
    world = World(Path(folder))

    async def endless(prefix: Prefix) -> AsyncIterator[str]:
        number = len(prefix)
        while True:
            world.note("made")
            yield str(number)
            number += 1
            await asyncio.sleep(0)

    async for piece in stream("numbers", endless):
        if piece == "2":
            break
    used = await _use(folder, piece)
    world.may_die("after")
    return used


async def run_leaving(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("leaving", leaving, str(folder))


def test_a_stream_that_was_left_early_is_no_change_in_replay(home: Home, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.die_at("after")
    with nursery() as children:
        kill(children, run_leaving, home, tmp_path)
        made = world.notes().count("made")
        assert go_on(children, run_leaving, home, tmp_path) == "2"
    assert world.notes().count("used 2") == 1
    assert world.notes().count("made") == made


@step
async def _ask_in_step(folder: str) -> str:
    world = World(Path(folder))

    async def model(prefix: Prefix) -> AsyncIterator[str]:
        world.note(f"asked after {len(prefix)}")
        for number in range(len(prefix) // 1024, 100):
            world.may_die(number)
            yield PIECES[number]

    return "".join([piece async for piece in stream("answer", model)])


@durable
async def stepping(folder: str) -> str:
    first = await _ask_in_step(folder)
    World(Path(folder)).may_die("after")
    return first


async def run_stepping(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("stepping", stepping, str(folder))


@pytest.mark.req("R86", "R118")
def test_inside_a_step_a_stream_goes_on_too(home: Home, tmp_path: Path) -> None:
    world = World(tmp_path)
    with nursery() as children:
        for where in (60, "after"):
            world.die_at(where)
            kill(children, run_stepping, home, tmp_path)
        assert go_on(children, run_stepping, home, tmp_path) == WHOLE
    first, second = world.notes()
    assert first == "asked after 0"
    assert 60 * 1024 - LARGEST_BATCH <= int(second.split()[-1]) <= 60 * 1024


async def test_streams_side_by_side_are_whole_each(quick_home: Home) -> None:
    async def take(name: str) -> str:
        return "".join([piece async for piece in stream(name, _pieces(*name * 5))])

    @durable
    async def both() -> list[str]:
        return await asyncio.gather(take("a"), take("b"))

    async with quick_home.open() as app:
        assert await app.run("both", both) == ["aaaaa", "bbbbb"]


@step(flush=True)
async def _weigh(folder: str, text: str) -> int:
    World(Path(folder)).note(f"weighed {text[:3]} {len(text)}")
    return len(text)


@durable
async def weighing(folder: str) -> list[int]:
    world = World(Path(folder))

    async def one(name: str) -> int:
        async def model(prefix: Prefix) -> AsyncIterator[str]:
            for number in range(len(prefix) // 1024, 40):
                world.may_die(f"{name} {number}")
                yield f"{name}{number:02d}{'·' * 1021}"
                await asyncio.sleep(0)

        first = await _weigh(folder, name)
        text = "".join([piece async for piece in stream(f"text-{name}", model)])
        return first + await _weigh(folder, text)

    return await asyncio.gather(one("a"), one("b"), one("c"))


async def run_weighing(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("weighing", weighing, str(folder))


@pytest.mark.req("R86")
def test_streams_side_by_side_go_on_after_a_crash_each_where_it_was(home: Home, tmp_path: Path) -> None:
    world = World(tmp_path)
    with nursery() as children:
        for where in ("b 30", "c 35"):
            world.die_at(where)
            kill(children, run_weighing, home, tmp_path)
        assert go_on(children, run_weighing, home, tmp_path) == [1 + 40 * 1024] * 3
    # A set: a step that was under way in one of them, when another had the process killed, is run again.
    assert set(world.notes()) == {f"weighed {name} 1" for name in "abc"} | {
        f"weighed {name}00 {40 * 1024}" for name in "abc"
    }


@durable
async def giving_up(folder: str) -> str:
    world = World(Path(folder))

    async def model(prefix: Prefix) -> AsyncIterator[str]:
        world.note("asked")
        yield "first"
        await asyncio.Event().wait()

    answer = stream("slow", model)
    try:
        async with asyncio.timeout(0.05):
            async for _ in answer:
                pass
    except TimeoutError:
        await _use(folder, answer.text)
    world.may_die("after")
    return f"{answer.text} {answer.is_complete}"


async def run_giving_up(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("giving-up", giving_up, str(folder))


def test_a_stream_that_the_code_gave_up_is_given_up_in_replay_too(home: Home, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.die_at("after")
    with nursery() as children:
        kill(children, run_giving_up, home, tmp_path)
        assert go_on(children, run_giving_up, home, tmp_path) == "first False"
    assert world.notes() == ["asked", "used first"]


# ── the edges ────────────────────────────────────────────────────────────────────────────────────


async def test_without_a_task_it_is_the_source_itself() -> None:
    assert [piece async for piece in stream("a", _pieces("x", "y"))] == ["x", "y"]


async def test_what_is_no_text_is_refused(quick_home: Home) -> None:
    @durable
    async def odd() -> None:
        async for _ in stream("a", _pieces(b"bytes")):  # type: ignore[arg-type]
            pass

    async with quick_home.open() as app:
        with pytest.raises(InvalidInput, match="gave bytes"):
            await app.run("odd", odd)


@pytest.mark.parametrize("name", ["", "a|b", "a#1"])
def test_a_name_that_would_blur_paths_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        stream(name, _pieces())


# ── pieces waited for one by one ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("in_step", [False, True], ids=["function", "step"])
async def test_pieces_that_are_each_waited_for_with_a_timeout_are_all_there(quick_home: Home, in_step: bool) -> None:
    """asyncio.wait_for has each of them awaited in a task of its own, before Python 3.12."""

    async def model(_: Prefix) -> AsyncIterator[str]:
        for piece in ("a", "b", "c"):
            yield piece
            await asyncio.sleep(0)

    async def reading() -> str:
        source, text = stream("answer", model), ""
        while (piece := await asyncio.wait_for(anext(source, None), 120)) is not None:
            text += piece
        return text

    reading_step = step(reading)

    @durable
    async def reads() -> str:
        return await (reading_step() if in_step else reading())

    async with quick_home.open() as app:
        assert await app.run("job", reads) == "abc"


async def test_a_stream_that_was_closed_is_not_taken_for_a_whole_one(quick_home: Home) -> None:
    async def model(_: Prefix) -> AsyncIterator[str]:
        yield "a"
        await asyncio.Event().wait()

    @durable
    async def reads() -> str:
        source = stream("answer", model)
        text = await anext(source)
        await source.aclose()
        try:
            await anext(source)
        except InvalidInput as error:
            return f"{text}: {error.what}"
        return text

    async with quick_home.open() as app:
        assert "was closed" in await app.run("job", reads)
