"""An undo or a probe that could not be called is refused where its effect is declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from perdure import Perdure, durable, effect, pause
from perdure.effects import DID_NOT_HAPPEN, Happened
from perdure.errors import InvalidInput
from tests.durable.effects_kit import until_paused


def charge(order: str, cents: int = 5) -> str:
    return f"{order} {cents}"


def book(self: Any, seat: str) -> str:
    return seat


def send(to: str, urgent: bool = False, /, *lines: str, sign: str = "", **headers: str) -> str:
    return to


class Desk:
    @effect
    def refund(self, result: str, order: str, cents: int = 5) -> None: ...

    def give_back(self, result: str, order: str, cents: int = 5) -> None: ...


MISFITS: list[tuple[Callable[..., Any], Any, str]] = [
    (charge, lambda result: 0, "too many positional arguments"),
    (charge, lambda result, order: 0, "too many positional arguments"),
    (charge, lambda result, order, cents: 0, "missing a required argument: 'cents'"),
    (charge, lambda result, order, cents=5, *, why: 0, "missing a required (keyword-only )?argument: 'why'"),
    (charge, lambda result, cents=5, order="": 0, "order would be given to it as cents"),
    (charge, lambda order, result, cents=5: 0, "result would be given to it as order"),
    (charge, lambda result, *rest, cents=5: 0, "cents would be given to it as one of the rest"),
    (charge, Desk().refund, "called without an instance"),
    (charge, "refund", "cannot be called"),
    (charge, min, "cannot be read"),
    (book, lambda self, result, seat: 0, "called without an instance"),
    (book, lambda self, seat: 0, "called without an instance"),
    (send, lambda result, to, urgent=False, *, sign="", **headers: 0, r"it takes no \*lines"),
    (send, lambda result, to, urgent=False, *lines, sign="": 0, r"it takes no \*\*headers"),
]

FITS: list[tuple[Callable[..., Any], Any]] = [
    (charge, lambda result, order, cents=5: 0),
    (charge, lambda receipt, number, cents=5: 0),  # what must be given goes by position
    (charge, lambda result, *rest, **more: 0),
    (charge, lambda *_, **__: 0),
    (charge, Desk().give_back),
    (book, lambda result, seat: 0),
    (send, lambda result, to, urgent=False, *lines, sign="", **headers: 0),
]


@pytest.mark.req("R36")
@pytest.mark.parametrize("function, undo, problem", MISFITS)
def test_an_undo_that_could_not_be_called_is_refused_where_the_effect_is_declared(
    function: Any, undo: Any, problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        effect(undo=undo)(function)


@pytest.mark.req("R36")
@pytest.mark.parametrize("function, undo", FITS)
def test_an_undo_that_takes_what_the_effect_takes_is_accepted(function: Any, undo: Any) -> None:
    effect(undo=undo)(function)


@pytest.mark.req("R34")
@pytest.mark.parametrize(
    "function, verify, problem",
    [
        (charge, lambda: 0, "too many positional arguments"),
        (charge, lambda order, cents: 0, "missing a required argument: 'cents'"),
        (charge, lambda cents=5, order="": 0, "order would be given to it as cents"),
        (book, lambda seat: 0, "too many positional arguments"),
        (charge, "find", "cannot be called"),
    ],
)
def test_a_probe_that_could_not_be_called_is_refused_where_the_effect_is_declared(
    function: Any, verify: Any, problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        effect(verify=verify)(function)


@pytest.mark.req("R34")
@pytest.mark.parametrize(
    "function, verify",
    [
        (charge, lambda order, cents=5: 0),
        (charge, effect(charge)),
        (charge, min),  # it does not say what it takes
        (book, lambda self, seat: 0),
        (book, lambda desk, seat: 0),
    ],
)
def test_a_probe_that_takes_what_the_effect_takes_is_accepted(function: Any, verify: Any) -> None:
    effect(verify=verify)(function)


@pytest.mark.req("R36")
async def test_the_refusal_says_how_it_is_called() -> None:
    with pytest.raises(InvalidInput) as refused:
        effect(undo=lambda result: 0)(charge)
    assert "(result, order, cents=5)" in str(refused.value)


CALLS: list[tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...], dict[str, Any]]] = [
    (("a", 1), {}, ("a", 1), {}),
    ((), {"cents": 1, "order": "a"}, ("a", 1), {}),
    (("a",), {"memo": "m"}, ("a",), {"memo": "m"}),
]


@pytest.mark.req("R36")
@pytest.mark.parametrize("args, kwargs, handed_on, by_name", CALLS)
async def test_an_undo_gets_the_arguments_in_their_order_however_the_effect_was_called(
    quick_url: str, args: Any, kwargs: Any, handed_on: Any, by_name: Any
) -> None:
    undone = []

    def give_back(*given: Any, **named: Any) -> None:
        undone.append((given, named))

    @effect(undo=give_back)
    async def pay(order: str, cents: int = 5, memo: str = "") -> str:
        return "receipt"

    @durable
    async def work() -> str:
        await pay(*args, **kwargs)
        return await pause.input("go on?", str)

    async with Perdure(quick_url) as app:
        await until_paused(app, "t", work)
        await (await app.tasks.handle("t")).cancel()
    assert undone == [(("receipt", *handed_on), by_name)]


@pytest.mark.req("R34")
@pytest.mark.parametrize("args, kwargs, handed_on, by_name", CALLS)
async def test_a_probe_gets_the_arguments_in_their_order_however_the_effect_was_called(
    quick_url: str, args: Any, kwargs: Any, handed_on: Any, by_name: Any
) -> None:
    asked = []

    def look(*given: Any, **named: Any) -> Any:
        asked.append((given, named))
        return Happened("found") if len(asked) == 1 else DID_NOT_HAPPEN

    @effect(verify=look)
    async def pay(order: str, cents: int = 5, memo: str = "") -> str:
        raise ConnectionError

    @durable
    async def work() -> str:
        return await pay(*args, **kwargs)

    async with Perdure(quick_url) as app:
        assert await app.run("t", work) == "found"
    assert asked == [(handed_on, by_name)]
