"""A signal is checked against the type its task waits for when it is sent, or when a wait takes one that came early."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, pause, signals
from perdure._durable import where
from perdure.cli import main
from perdure.errors import InvalidInput
from tests.durable.effects_kit import status_of, until_paused


@dataclass
class Order:
    id: str
    cents: int


@durable
async def counts() -> int:
    return await signals.next("count", int)


@durable
async def orders() -> Order:
    return await signals.next("order", Order)


@durable
async def at() -> datetime:
    return await signals.next("at", datetime)


async def test_a_signal_that_does_not_fit_is_refused_to_its_sender_and_the_task_keeps_waiting(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await until_paused(app, "job", counts)
        task = await app.tasks.handle("job")
        for wrong in ("many", 2.5, None, True, {"n": 1}, [3]):
            with pytest.raises(InvalidInput) as refused:
                await task.signal("count", wrong)
            assert "waits for the signal 'count' as int" in refused.value.what and repr(wrong) in refused.value.what
            assert "the task keeps waiting" in refused.value.kept and '"integer"' in refused.value.do
        assert await status_of(app, "job") == "paused"
        assert not [event for event in await app.tasks.events("job") if event.kind == "signalled"]
        await task.signal("count", 3)
        assert await app.run("job", counts) == 3


async def test_what_fits_is_taken_in_any_form_it_may_have(quick_url: str) -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    async with Perdure(quick_url) as app:
        for number, (function, name, value, want) in enumerate(
            [
                (orders, "order", Order("a", 1), Order("a", 1)),
                (orders, "order", {"id": "a", "cents": 1}, Order("a", 1)),
                (at, "at", moment, moment),
                (at, "at", moment.isoformat(), moment),
            ]
        ):
            id = f"job-{number}"
            await until_paused(app, id, function)
            await (await app.tasks.handle(id)).signal(name, value)
            assert await app.run(id, function) == want


async def test_a_signal_nobody_waits_for_is_kept_whatever_it_is(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await until_paused(app, "job", counts)
        await (await app.tasks.handle("job")).signal("another", "anything")
        assert await status_of(app, "job") == "paused"


async def test_one_that_came_before_the_wait_is_set_aside_and_told(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await app.start("job", counts)
        task = await app.tasks.handle("job")
        for wrong in ("many", "more"):
            await task.signal("count", wrong)  # nobody waits yet: the type is not known
        await until_paused(app, "job", counts)
        told = " ".join((await where(app.tasks, "job")).waits_for)
        assert "the signal 'count'" in told and "2 sent before set aside: not int" in told
        with pytest.raises(InvalidInput, match="as int"):
            await task.signal("count", "still many")
        await task.signal("count", 3)
        assert await app.run("job", counts) == 3


async def test_a_fitting_one_behind_a_misfit_is_taken_at_once(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await app.start("job", counts)
        task = await app.tasks.handle("job")
        for value in ("many", 3, 4):
            await task.signal("count", value)
        assert await app.run("job", counts) == 3


async def test_what_was_set_aside_stays_aside_in_the_next_process(url: str) -> None:
    """Each app is another attempt, as after a kill: the wait goes on behind the misfit, and takes no signal twice."""
    async with Perdure(url) as app:
        await app.start("job", counts)
        await (await app.tasks.handle("job")).signal("count", "many")
        await until_paused(app, "job", counts)
    async with Perdure(url) as app:
        await until_paused(app, "job", counts)
        await (await app.tasks.handle("job")).signal("count", 3)
    async with Perdure(url) as app:
        assert await app.run("job", counts) == 3


async def test_a_wait_that_is_given_up_behind_a_misfit_leaves_the_next_signal_to_others(quick_url: str) -> None:
    @durable
    async def gives_up() -> int:
        waiting = asyncio.ensure_future(signals.next("count", int))
        await pause.input("give up?", str)
        waiting.cancel()
        await asyncio.wait({waiting})
        return await signals.next("count", int)

    async with Perdure(quick_url) as app:
        await app.start("job", gives_up)
        task = await app.tasks.handle("job")
        await task.signal("count", "many")
        await until_paused(app, "job", gives_up)
        await task.answer("yes", by="ada")
        await until_paused(app, "job", gives_up)
        await task.signal("count", 3)
        assert await until_paused(app, "job", gives_up) == 3


async def test_an_answer_to_a_wait_for_a_signal_is_checked_like_the_signal(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await until_paused(app, "job", counts)
        task = await app.tasks.handle("job")
        with pytest.raises(InvalidInput, match="as int, and got 'many'"):
            await task.answer("many", by="ada")
        await task.answer(3, by="ada")
        assert await app.run("job", counts) == 3


def run(capsys: Any, url: str, *words: str) -> tuple[int, Any]:
    code = main([*words, "--store", url, "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out or said.err)


async def test_the_command_line_is_told_what_is_waited_for(tmp_path: Path, capsys: Any) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    async with Perdure(url) as app:
        await until_paused(app, "job", counts)
    code, said = run(capsys, url, "signal", "job", "count", "many")
    assert code == 2 and "waits for the signal 'count' as int, and got 'many'" in json.dumps(said)
    assert main(["where", "job", "--store", url]) == 0
    assert "perdure signal job count" in capsys.readouterr().out
    assert run(capsys, url, "signal", "job", "count", "3")[0] == 0
    async with Perdure(url) as app:
        assert await app.run("job", counts) == 3
