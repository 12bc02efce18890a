"""The advice that comes with an error fits what has happened, and `where` repeats it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, effect, pause, span, step
from perdure._durable import where
from perdure.cli import main
from perdure.errors import LeaseHeld, NotFound, ReplayDiverged
from tests.durable.effects_kit import wait_until

# What the function that has "changed" since the crash does now.
NOW: dict[str, Any] = {}


@step
async def first(number: int) -> int:
    return number


@step
async def renamed(number: int) -> int:
    return number


@effect
async def send(number: int) -> None: ...


@effect(name="send it")
async def renamed_send(number: int) -> None: ...


@durable(name="advice: changing")
async def changing(number: int) -> None:
    await NOW["call"](NOW.get("number", number))
    await pause.input("go on?", bool)
    await first(99)


async def until_paused(app: Perdure, id: str) -> None:
    async def is_paused() -> bool:
        record = await app.tasks.get(id)
        assert record is not None and not record.is_finished, record
        return record.is_paused

    await wait_until(is_paused)


async def diverge(app: Perdure, id: str = "t") -> ReplayDiverged:
    """Answer the question; the next attempt runs the changed code."""
    await (await app.tasks.open(id)).answer(True)
    with pytest.raises(ReplayDiverged) as raised:
        await app.run(id, changing, 1)
    return raised.value


async def begin(app: Perdure) -> None:
    await app.start("t", changing, 1)
    async with app.worker():
        await until_paused(app, "t")


@pytest.mark.parametrize(
    "before, after, words",
    [
        ((first, 1), (first, 2), "does the argument come from random or time? use recorded.random()"),
        ((first, 1), (renamed, 1), 'was it renamed? keep its old name: @step(name="first")'),
        ((send, 1), (renamed_send, 1), 'was it renamed? keep its old name: @effect(name="send")'),
        ((first, 1), (renamed, 2), "put the calls back in order"),
    ],
)
async def test_diverged_names_the_likely_cause_and_where_repeats_it(
    quick_url: str, before: Any, after: Any, words: str
) -> None:
    NOW.update(call=before[0], number=before[1])
    async with Perdure(quick_url) as app:
        await begin(app)
        NOW.update(call=after[0], number=after[1])
        error = await diverge(app)
        found = await where(app.tasks, "t")
    assert error.do.startswith(words)
    assert found.next.startswith(words) and found.next.endswith("; then `perdure resume t`")


async def test_a_fork_that_has_copied_too_much_is_told_to_fork_earlier(quick_url: str) -> None:
    NOW.clear()
    NOW.update(call=first)
    async with Perdure(quick_url) as app:
        await begin(app)
        task = await app.tasks.open("t")
        await task.fork("fork one", at="first#1", set={"number": 2})
        with pytest.raises(ReplayDiverged) as raised:
            await app.run("fork one", changing, 2)
        assert "copied from 't': fork earlier, `perdure fork t NEW --at 0`" in raised.value.do
        assert (await where(app.tasks, "fork one")).next.endswith("then `perdure resume 'fork one'`")
        await task.fork("fork two", at="0", set={"number": 2})
        await app.start("fork two", changing, 2)
        async with app.worker():
            await until_paused(app, "fork two")  # as advised: it asks, and has not diverged
        assert (await where(app.tasks, "fork two")).traceback == ""


async def test_a_lease_that_is_held_says_how_to_take_the_task(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        task = await app.tasks.open("held one", state={})
        async with task.attempt():
            with pytest.raises(LeaseHeld) as raised:
                async with (await app.tasks.open("held one")).attempt():
                    pass
    assert "`perdure take 'held one'`" in raised.value.do


async def test_the_runtime_of_an_unknown_task_says_to_open_it(tmp_path: Path) -> None:
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        with pytest.raises(NotFound) as raised:
            await app.runtime("nobody")
    assert "`await app.tasks.open('nobody')`" in raised.value.do


# ── effects after a rollback ─────────────────────────────────────────────────────────────────────


@durable(name="advice: rolled back")
async def rolled() -> None:
    async with span("first"):
        await send(1)
    await send(2)
    await pause.input("go on?", bool)


async def test_an_effect_that_a_rollback_keeps_is_listed_once(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await app.start("r", rolled)
        async with app.worker():
            await until_paused(app, "r")
        task = await app.tasks.open("r")
        *_, last = [one async for one in task.checkpoints()]
        await task.rollback(last.id, undo=False)
        async with app.worker():
            await until_paused(app, "r")
        calls = [one.call for one in await app.effects.of("r")]
    assert calls.count("send(1)") == 1, "it happened once, and stays done"
    assert calls.count("send(2)") == 2, "the rollback kept the first, and the code has done its own"


# ── the command line ─────────────────────────────────────────────────────────────────────────────


@durable(name="advice: failing")
async def failing(how: str) -> str:
    if how in NOW.get("broken", ()):
        raise {"net": ConnectionError, "code": KeyError}[how](f"the {how} is broken")
    return how


def told(capsys: Any, *args: str, code: int = 0) -> str:
    assert main(list(args)) == code
    return str(capsys.readouterr().out)


async def test_resume_all_takes_what_its_filter_chooses_and_tells_first_what_that_is(
    tmp_path: Path, capsys: Any
) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    NOW["broken"] = ("net", "code")
    async with Perdure(url) as app:
        for id, how in (("net-1", "net"), ("net-2", "net"), ("code-1", "code")):
            with pytest.raises((ConnectionError, KeyError)):
                await app.run(id, failing, how)
        await (await app.tasks.open("waiting", state={})).pause("wait for me", reason="human_input")
    at = ("--store", url)
    shown = told(capsys, "resume", "--all", "--error", "ConnectionError", "--dry-run", *at)
    assert "2 of 2 tasks would resume" in shown and "net-1" in shown and "net-2" in shown and "code-1" not in shown
    assert {one["status"] for one in json.loads(told(capsys, "tasks", "--json", *at))["items"]} == {"failed", "paused"}
    went = json.loads(told(capsys, "resume", "--all", "--error", "connectionerror", "--json", *at))
    assert {one["id"] for one in went["items"]} == {"net-1", "net-2"} and went["resumed"] == 2
    left = json.loads(told(capsys, "tasks", "--json", "--status", "failed", *at))["items"]
    assert [one["id"] for one in left] == ["code-1"]
    paused = json.loads(told(capsys, "resume", "--all", "--reason", "human_input", "--json", *at))
    assert [one["id"] for one in paused["items"]] == ["waiting"]
    assert "no task matches" in told(capsys, "resume", "--all", "--agent", "nobody", *at)
    assert "no task matches" in told(
        capsys, "resume", "--all", "--tag", "team=nobody", *at
    )  # code-1 has failed, without it


@pytest.mark.parametrize("words", [(), ("t", "--all"), ("t", "--dry-run"), ("t", "--error", "x"), ("--all", "--plan")])
def test_resume_refuses_a_mixture_of_one_task_and_all(tmp_path: Path, capsys: Any, words: tuple[str, ...]) -> None:
    assert main(["resume", *words, "--store", f"sqlite://{tmp_path}/p.db"]) == 2
    assert not (tmp_path / "p.db").exists()


@pytest.mark.parametrize("words", [("tasks",), ("show", "t"), ("where", "t"), ("effects",), ("resume", "--all")])
def test_a_store_that_does_not_exist_is_named(tmp_path: Path, capsys: Any, words: tuple[str, ...]) -> None:
    file = tmp_path / "nowhere" / "p.db"
    assert main([*words, "--store", str(file)]) == 3
    out = capsys.readouterr()
    assert f"no store '{file}' in {file.parent}" in out.err and "--store" in out.err and out.out == ""
    assert not file.parent.exists(), "looking makes nothing"


def test_a_verb_that_makes_the_store_is_not_refused(tmp_path: Path, capsys: Any) -> None:
    assert main(["open", "t", "--store", str(tmp_path / "new" / "p.db")]) == 0
    assert main(["tasks", "--store", str(tmp_path / "new" / "p.db")]) == 0
