"""Every length of time in the API is a timedelta or a text such as "10m"; a number is refused in the same words."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from datetime import timedelta
from typing import Any

import pytest

import perdure
import perdure.memory
from perdure import Perdure, Retry, durable, effect, model_call, pause, step, stream, timeout
from perdure._ground.clock import MovableClock
from perdure._ground.durations import parse_duration
from perdure._model import make_pause
from perdure._worker import Queue
from perdure.errors import InvalidInput
from perdure.memory import ThreadMemory, Timeouts
from perdure.models import Budget
from perdure.runtime import Fingerprint
from perdure.types import Config

TEN_MINUTES = timedelta(minutes=10)


@pytest.mark.parametrize(
    "text, length",
    [
        ("500ms", timedelta(milliseconds=500)),
        ("30s", timedelta(seconds=30)),
        ("10m", TEN_MINUTES),
        ("10 min", TEN_MINUTES),
        ("1.5h", timedelta(minutes=90)),
        ("1h30m", timedelta(minutes=90)),
        (" 1h 30m ", timedelta(minutes=90)),
        ("2d", timedelta(days=2)),
        ("1w", timedelta(weeks=1)),
    ],
)
def test_a_text_is_read_as_people_write_it(text: str, length: timedelta) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize("text", ["", "10", "m", "ten minutes", "-10m", "10m!", "1e9d", "9999999999999d", "१m"])
def test_another_text_is_not_a_length(text: str) -> None:
    assert parse_duration(text) is None


# ── what takes one ───────────────────────────────────────────────────────────────────────────────


async def nothing() -> None: ...


function = durable(name="of_durations")(nothing)
TAKES: dict[str, Callable[[Any], Any]] = {
    "@step": lambda length: step(timeout=length)(nothing),
    "@effect": lambda length: effect(timeout=length)(nothing),
    "@model_call": lambda length: model_call(model="m", timeout=length)(nothing),
    "options timeout": lambda length: function.options(timeout=length),
    "options debounce": lambda length: function.options(debounce=length),
    "stream": lambda length: stream("s", lambda _: None, silence=length),  # type: ignore[arg-type, return-value]
    "Retry wait": lambda length: Retry(3, wait=length).wait,
    "Retry cap": lambda length: Retry(3, cap=length).cap,
    "Budget": lambda length: Budget(time=length).time,
    "Config timeout": lambda length: Config(timeout=length).timeout,
    "Config checkpoint_interval": lambda length: Config(checkpoint_interval=length).checkpoint_interval,
    "Config keep_for": lambda length: Config(keep_for=length).keep_for,
    "queue": lambda length: Queue(rate=(10, length)),
    "worker grace": lambda length: Perdure("memory://durations").worker(grace=length),
    "worker stalled_after": lambda length: Perdure("memory://durations").worker(stalled_after=length),
    "fingerprint": lambda length: Fingerprint.custom("x", lambda: 1, patience=length).patience,
    "memory timeouts": lambda length: Timeouts(store=length).store,
    "thread layer": lambda length: ThreadMemory("t", ttl=length).ttl,
    "a pause's duration": lambda length: make_pause("scheduled_wait", "x", {"duration": length}, 0, {}),
    "a pause's expires": lambda length: make_pause("human_input", "x", {"expires": length}, 0, {}),
    "a pause's remind": lambda length: make_pause("human_input", "x", {"remind": length}, 0, {}),
    "a pause's every": lambda length: make_pause("external_dependency", "x", {"every": length}, 0, {}),
    "a pause's max_wait": lambda length: make_pause("rate_limit", "x", {"max_wait": length}, 0, {}),
}


@pytest.mark.parametrize("which", TAKES)
def test_it_takes_a_timedelta_and_a_text_and_refuses_a_number(which: str) -> None:
    by_text, by_timedelta = TAKES[which]("10m"), TAKES[which](TEN_MINUTES)
    if isinstance(by_text, timedelta):
        assert by_text == by_timedelta == TEN_MINUTES
    for number in (5, 2.5, True):
        with pytest.raises(InvalidInput) as refused:
            TAKES[which](number)
        assert f"is {number!r}, " in refused.value.what
        assert "500ms, 30s, 10m, 1h30m or 2d, or give a timedelta" in refused.value.do
    with pytest.raises(InvalidInput):
        TAKES[which](timedelta(seconds=-1))


WAITS: dict[str, Callable[[Any], Any]] = {
    "expires of approval": lambda length: pause.approval("ok?", expires=length),
    "expires of input": lambda length: pause.input("how many?", int, expires=length),
    "expires of callback": lambda length: pause.callback("job", int, expires=length),
    "every": lambda length: pause.poll(nothing, every=length),  # type: ignore[arg-type]
    "limit": lambda length: pause.poll(nothing, every="1s", limit=length),  # type: ignore[arg-type]
    "max_wait": lambda length: pause.rate_limit(retry_after=1, max_wait=length),
    "wait": lambda length: pause.wait(length),
    "frame": lambda length: perdure.frames.push("f", goal="g", expires=length),
}


@durable
async def paused_by_a_number(which: str) -> None:
    await WAITS[which](5)


@pytest.mark.parametrize("which", WAITS)
async def test_a_number_is_refused_by_every_pause(which: str) -> None:
    async with Perdure("memory://lengths") as app:
        with pytest.raises(InvalidInput, match="is 5, a number without a unit") as refused:
            await app.run(which, paused_by_a_number, which)
        assert '="5s", or another text like 500ms' in refused.value.do


async def test_waiting_on_others_takes_a_text(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        handle = await app.start("done", function)
        for wait in (handle.result, lambda length: app.tasks.wait_for("done", timeout=length)):
            with pytest.raises(InvalidInput, match="timeout is 5, a number without a unit"):
                await wait(5)
        assert await app.run("done", function) is None
        assert await handle.result("10m") is None
        assert (await app.tasks.wait_for("done", timeout="10m")).status == "completed"


async def test_a_wait_by_text_is_the_same_call_as_one_by_units(quick_url: str, clock: MovableClock) -> None:
    lengths: list[Any] = [{"minutes": 1}]

    @durable
    async def waits() -> str:
        given = lengths[-1]
        await (pause.wait(**given) if isinstance(given, dict) else pause.wait(given))
        return "waited"

    async with Perdure(quick_url) as app:
        await app.start("job", waits)
        async with app.worker():
            await app.tasks.wait_for("job", status="paused")
        lengths.append("60s")  # the code was changed to say the same in other words
        clock.advance(minutes=1)
        assert await app.run("job", waits) == "waited"


# ── numbers that do have a unit ──────────────────────────────────────────────────────────────────


async def test_a_timeout_takes_seconds_a_text_or_a_timedelta() -> None:
    for length in (60, 60.0, "1m", timedelta(minutes=1)):
        async with timeout(length):
            pass
    for length in (0, "0s", timedelta(0)):
        with pytest.raises(TimeoutError):
            async with timeout(length):
                await asyncio.Event().wait()
    with pytest.raises(InvalidInput, match="not a length of time"):
        timeout("soon")


@pytest.mark.parametrize("given", [2, 2.0, "2", "2s", timedelta(seconds=2)])
def test_retry_after_is_taken_as_a_header_has_it(given: Any) -> None:
    found = make_pause("rate_limit", "x", {"retry_after": given}, 0, {})
    assert found.due_at is not None and found.due_at.timestamp() == 2


# ── none is left out ─────────────────────────────────────────────────────────────────────────────


def public_parameters() -> Iterator[tuple[str, inspect.Parameter]]:
    for home in (perdure, perdure.memory):
        for name in home.__all__:
            made = getattr(home, name)
            members = vars(made) if inspect.isclass(made) else {"": made}
            for member, value in members.items():
                if member.startswith("_") and (member != "__init__" or is_dataclass(made)):
                    continue
                function = getattr(value, "__func__", value)
                function = inspect.unwrap(function) if callable(function) else function
                if inspect.isfunction(function):
                    for parameter in inspect.signature(function).parameters.values():
                        yield f"{name}.{member}".rstrip("."), parameter


def test_no_public_function_takes_only_a_timedelta() -> None:
    found = list(public_parameters())
    assert len(found) > 300
    assert any("Duration" in str(parameter.annotation) for _, parameter in found)
    narrow = [f"{where}({parameter})" for where, parameter in found if "timedelta" in str(parameter.annotation)]
    assert narrow == []
