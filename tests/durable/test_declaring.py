"""A mistake in a decorator is refused where it is written, and what cannot run is never taken for done."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from perdure import Perdure, Retry, durable, effect, step
from perdure.errors import InvalidInput, ResultNotStorable
from tests.support.fixtures import emptied_for_each_test

ran: list[str] = []


_nothing_ran = emptied_for_each_test(ran)


async def function() -> None: ...


class_method: Any = classmethod(lambda cls: None)
static_method: Any = staticmethod(function)


MISTAKES: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: step("fetch"), "'fetch' stands where the function goes", "name='fetch'"),  # type: ignore[call-overload]
    (lambda: durable("order"), "'order' stands where", "name='order'"),  # type: ignore[call-overload]
    (lambda: effect(class_method), "a classmethod stands below", "above"),
    (lambda: durable(class_method), "a classmethod stands below", "above"),
    (lambda: step(static_method), "a staticmethod stands below", "@staticmethod above"),
    (lambda: effect(keyed=True)(static_method), "a staticmethod stands below", "@staticmethod above"),
    (lambda: durable(static_method), "a staticmethod stands below", "@staticmethod above"),
    (lambda: step(name=3)(function), "name is 3", "str"),  # type: ignore[call-overload]
    (lambda: durable(name=3)(function), "name is 3", "str"),  # type: ignore[call-overload]
    (lambda: step(retry=3)(function), "retry is 3", "Retry(3)"),  # type: ignore[call-overload]
    (lambda: effect(retry=3)(function), "retry is 3", "Retry(3)"),  # type: ignore[call-overload]
    (lambda: step(timeout=5)(function), "timeout is 5", 'timeout="5s"'),  # type: ignore[call-overload]
    (lambda: effect(timeout=5)(function), "timeout is 5", 'timeout="5s"'),  # type: ignore[call-overload]
    (lambda: step(raises=ValueError)(function), "raises is the class", "raises=[ValueError]"),  # type: ignore[call-overload]
    (lambda: effect(failed_on=OSError)(function), "failed_on is", "failed_on=[OSError]"),  # type: ignore[call-overload]
    (lambda: effect(failed_on=["OSError"])(function), "failed_on holds", "classes"),  # type: ignore[list-item]
    (lambda: durable(upgrade=function)(function), "upgrade= is an async", "plain def"),
    (lambda: Retry(wait=1), "wait is 1", 'wait="1s"'),  # type: ignore[arg-type]
    (lambda: Retry(on=OSError), "on is the class", "on=[OSError]"),  # type: ignore[arg-type]
    (lambda: durable(function).options(timeout=5), "timeout is 5", 'timeout="5s"'),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("mistake, what, do", MISTAKES)
def test_a_mistake_is_refused_where_it_is_written(mistake: Callable[[], Any], what: str, do: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        mistake()
    assert what in refused.value.what and do in refused.value.do


async def test_a_text_is_no_list_of_tasks_to_wait_for(quick_url: str) -> None:
    @durable
    async def work() -> None: ...

    async with Perdure(quick_url) as app:
        with pytest.raises(InvalidInput, match="depends_on is 'other'"):
            await app.start("task", work.options(depends_on="other"))
        with pytest.raises(InvalidInput, match="depends_on is 'other'"):
            await app.tasks.create("task", state={}, depends_on="other")
        assert await app.tasks.get("task") is None


class Sending:
    async def __call__(self, what: str) -> str:
        ran.append(what)
        return f"sent {what}"


async def test_an_object_that_is_called_and_awaited_may_be_a_step_an_effect_or_a_function(quick_url: str) -> None:
    fetch, send = step(name="fetch")(Sending()), effect(name="send")(Sending())

    @durable
    async def work() -> list[str]:
        return [await fetch("a"), await send("b")]

    async with Perdure(quick_url) as app:
        assert await app.run("work", work) == ["sent a", "sent b"]
        assert await app.run("whole", durable(name="whole")(Sending()), "c") == "sent c"
    assert ran == ["a", "b", "c"]


async def times(factor: int, number: int) -> int:
    return factor * number


async def test_a_partial_is_known_by_its_function(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        for _ in range(2):  # as when a cell is run again
            assert await app.run("six", durable(functools.partial(times, 2)), 3) == 6
        with pytest.raises(InvalidInput, match="times is given where the task's id belongs"):
            await app.run(durable(functools.partial(times, 2)), "six")  # type: ignore[arg-type]


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """As many decorators are: plain, whatever they decorate."""

    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


async def test_an_effect_that_gave_a_coroutine_was_not_done(quick_url: str) -> None:
    @effect
    @logged
    async def send(what: str) -> str:
        ran.append(what)
        return what

    @durable
    async def work() -> str:
        sent: str = await send("a")
        return sent

    async with Perdure(quick_url) as app:
        with pytest.raises(InvalidInput, match="send returned a coroutine that was not awaited") as refused:
            await app.run("work", work)
        assert refused.value.kept == "that it was not done"
        assert [one.state for one in await app.effects.of("work")] == ["failed"]
    assert ran == []


async def test_an_effect_that_did_something_and_returned_a_coroutine_was_done(quick_url: str) -> None:
    async def look() -> None: ...

    looking = look()

    @effect
    async def send() -> Any:
        ran.append("sent")
        return looking

    @durable
    async def work() -> None:
        await send()

    async with Perdure(quick_url) as app:
        with pytest.raises(ResultNotStorable, match="send was done"):
            await app.run("work", work)
        assert [one.state for one in await app.effects.of("work")] == ["done"]
    looking.close()
    assert ran == ["sent"]
