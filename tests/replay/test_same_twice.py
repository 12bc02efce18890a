"""What the code gets the first time is what it gets in every replay: values, copies, exceptions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from perdure._durable.declare.functions import step
from perdure._ground.encoding import class_fields as shapes
from perdure.errors import NotStorable, StepFailed, TimedOut
from perdure.types import register
from tests.replay.kit import play, play_again


async def both(program: Any) -> tuple[Any, Any]:
    first = await play(program)
    return first.result(), (await play_again(program, journal=first.journal)).result()


@dataclass
class Page:
    url: str
    tags: set[str]


async def test_a_value_comes_back_by_its_annotation_and_is_a_copy_the_first_time_too() -> None:
    kept: list[Page] = []

    @step
    async def fetch() -> Page:
        kept.append(Page("x", {"a", "b"}))
        return kept[-1]

    async def program() -> Page:
        page = await fetch()
        page.tags.add("changed by the caller")
        return page

    live, replayed = await both(program)
    assert live == replayed == Page("x", {"a", "b", "changed by the caller"})
    assert kept == [Page("x", {"a", "b"})], "the step's own object is not the caller's"


async def test_what_becomes_simpler_on_disk_is_simpler_at_once() -> None:
    class Text(str):
        pass

    @step
    async def fetch() -> Any:
        return {"text": Text("x"), "tuple": (1, 2), "moment": datetime(2026, 1, 1, tzinfo=UTC)}

    async def program() -> list[str]:
        return [type(value).__name__ for value in (await fetch()).values()]

    live, replayed = await both(program)
    assert live == replayed == ["str", "tuple", "datetime"]


async def test_a_result_that_cannot_be_kept_is_refused_with_its_path_and_the_same_way_again() -> None:
    ran = 0

    @step
    async def fetch() -> Any:
        nonlocal ran
        ran += 1
        return {"pages": [1, {"handle": object()}]}

    async def program() -> str:
        try:
            await fetch()
        except NotStorable as error:
            return f"{error.path}: {error.problem}"
        return "kept"

    live, replayed = await both(program)
    assert live == replayed
    assert live.startswith("result of fetch, pages[1].handle: ")
    assert ran == 1


# ── exceptions ───────────────────────────────────────────────────────────────────────────────────


class Declared(Exception):
    pass


class Stranger(Exception):
    pass


class Awkward(Exception):
    def __init__(self, code: int, *, text: str) -> None:
        super().__init__(code)
        self.text = text


@register
@dataclass
class Registered(Exception):
    code: int
    text: str = ""


@pytest.fixture(autouse=True)
def _registered() -> None:
    shapes._registered.setdefault("Registered", Registered)


@pytest.mark.parametrize(
    "raised, told",
    [
        (ValueError("bad", 3), "ValueError('bad', 3)"),
        (TimeoutError(), "TimeoutError()"),
        (Declared("x"), "Declared('x')"),
        (Registered(7, "seven"), "Registered(code=7, text='seven')"),
        (Stranger("x"), "StepFailed Stranger x"),
        (Awkward(1, text="t"), "Awkward(1)"),
        (ValueError(object), "StepFailed ValueError <class 'object'>"),
        (FileNotFoundError(2, "No such file", "a.txt"), "FileNotFoundError(2, 'No such file')"),
        (KeyError("\udcff"), "StepFailed KeyError '\\udcff'"),
    ],
)
async def test_an_exception_is_rebuilt_or_a_step_failed_both_times(raised: Exception, told: str) -> None:
    @step(raises=[Declared, Awkward])
    async def fail() -> None:
        raise raised

    async def program() -> str:
        try:
            await fail()
        except StepFailed as error:
            return f"StepFailed {error.type_name} {error.message}"
        except Exception as error:
            return repr(error)
        return "no"

    live, replayed = await both(program)
    assert live == replayed == told


async def test_a_group_is_rebuilt_with_its_members_so_that_each_can_be_caught_apart() -> None:
    @step(raises=[Declared])
    async def fail() -> None:
        raise ExceptionGroup("many", [ValueError("a"), ExceptionGroup("inner", [Declared("b"), Stranger("c")])])

    async def program() -> list[str]:
        caught = []
        try:
            await fail()
        except* ValueError as found:
            caught.append(f"values {found.exceptions}")
        except* Declared as found:
            caught.append(f"declared {found.exceptions}")
        except* StepFailed as found:
            caught.append(f"strangers {found.exceptions}")
        return caught

    live, replayed = await both(program)
    assert live == replayed
    assert live == [
        "values (ValueError('a'),)",
        "declared (ExceptionGroup('inner', [Declared('b')]),)",
        "strangers (ExceptionGroup('inner', [StepFailed('Stranger: c')]),)",
    ]


@pytest.mark.parametrize(
    "raised, told",
    [
        (FileNotFoundError(2, "No such file", "a.txt"), "[Errno 2] No such file: 'a.txt'"),
        (OSError(18, "Invalid cross-device link", "a", None, "b"), "[Errno 18] Invalid cross-device link: 'a' -> 'b'"),
    ],
)
async def test_an_error_of_the_system_still_names_its_files(raised: OSError, told: str) -> None:
    @step
    async def fail() -> None:
        raise raised

    async def program() -> str:
        try:
            await fail()
        except OSError as error:
            return str(error)
        return "no"

    live, replayed = await both(program)
    assert live == replayed == told


async def test_an_exception_of_perdures_own_comes_back_with_its_parts() -> None:
    @step
    async def fail() -> None:
        raise TimedOut("it took too long", kept="all of it", do="wait")

    async def program() -> Any:
        try:
            await fail()
        except TimedOut as error:
            return [error.what, error.kept, error.do]

    live, replayed = await both(program)
    assert live == replayed == ["it took too long", "all of it", "wait"]


async def test_the_cause_of_a_failure_is_there_to_be_read_the_first_time() -> None:
    @step
    async def fail() -> None:
        raise Stranger("deep inside")

    async def program() -> Any:
        await fail()

    error = (await play(program)).error
    assert isinstance(error, StepFailed) and isinstance(error.__cause__, Stranger)


async def test_a_step_without_a_task_just_runs() -> None:
    @step
    async def fail() -> None:
        raise Stranger("itself")

    with pytest.raises(Stranger):
        await fail()


async def test_a_large_result_works() -> None:
    """100 MB: kept and given back, or refused clearly. It is kept."""
    size = 100 * 1024 * 1024

    @step
    async def fetch() -> bytes:
        return bytes(size)

    async def program() -> int:
        return len(await fetch())

    assert await both(program) == (size, size)


async def test_a_result_past_what_any_record_may_hold_is_refused_with_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from perdure._ground.secrets import envelope
    from perdure.errors import TooLarge

    monkeypatch.setattr(envelope, "MAX_BYTES", 1_000)

    ran: list[int] = []

    @step
    async def fetch() -> bytes:
        ran.append(1)
        return bytes(2_000)

    async def program() -> str:
        try:
            await fetch()
        except TooLarge as error:
            return f"{error.limit}"
        return "kept"

    live, replayed = await both(program)
    assert live == replayed == "1000" and ran == [1]


async def test_ten_thousand_at_once_are_recorded_and_replayed() -> None:
    @step
    async def square(n: int) -> int:
        return n * n

    async def program() -> int:
        return sum(await asyncio.gather(*(square(n) for n in range(10_000))))

    live, replayed = await both(program)
    assert live == replayed == sum(n * n for n in range(10_000))
