"""Functions that other functions make: of one name, and still not mixed up by those who know them by it."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import Perdure, durable, effect, pause
from perdure.effects import Happened
from tests.durable.effects_kit import Died, Places, raising, until_paused
from tests.durable.test_pauses import ended, paused

done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def make_mailer() -> Any:
    @effect(undo=lambda result: done.append("mail taken back"))
    async def act() -> None:
        done.append("mail")

    @durable
    async def run() -> str:
        await act()
        return await pause.input("go on?", str)

    return run


def make_billing() -> Any:
    @effect(undo=lambda result: done.append("bill taken back"))
    async def act() -> None:
        done.append("bill")

    @durable
    async def run() -> str:
        await act()
        return await pause.input("go on?", str)

    return run


async def test_a_worker_carries_on_the_function_that_was_started_and_not_another_of_its_name(quick_url: str) -> None:
    mailer, billing = make_mailer(), make_billing()
    assert (mailer.name, billing.name) == ("make_mailer.run", "make_billing.run")
    async with Perdure(quick_url) as app, app.worker():
        handle = await app.start("mail", mailer)
        task = await app.tasks.handle("mail")
        await paused(app, "mail", "human_input")
        await task.answer("yes")
        assert await ended(handle) == "yes"
    assert done == ["mail"]


def make_looker(found: str) -> Any:
    def look() -> Happened[str]:
        done.append(f"looked for {found}")
        return Happened(found)

    return look


def make_first() -> Any:
    @effect(verify=make_looker("first"))
    async def risky() -> str:
        raise ConnectionError

    return risky


def make_second() -> Any:
    @effect(verify=make_looker("second"))
    async def risky() -> str:
        raise ConnectionError

    return risky


@pytest.mark.req("R34")
async def test_when_a_task_is_cancelled_an_uncertain_effect_is_looked_for_by_its_own_probe(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = make_first(), make_second()

    @durable
    async def work() -> None:
        await first()

    async with Perdure(quick_url) as app:
        places = Places(monkeypatch)
        places.at("effect.intended", raising(Died()))
        with pytest.raises(Died):
            await app.run("t", work)
        await (await app.tasks.handle("t")).cancel()
        assert [(one.state, one.settled) for one in await app.effects.of("t")] == [("done", "verify")]
    assert done == ["looked for first"]


@pytest.mark.req("R36")
async def test_an_effect_is_undone_by_its_own_undo_and_not_by_that_of_another_of_its_name(quick_url: str) -> None:
    mailer, _ = make_mailer(), make_billing()
    async with Perdure(quick_url) as app:
        await until_paused(app, "mail", mailer)
        await (await app.tasks.handle("mail")).cancel()
    assert done == ["mail", "mail taken back"]
