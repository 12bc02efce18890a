"""A task is carried on only in the world it was saved in, and with what it had around it."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from perdure import Perdure, durable, pause, step
from perdure._ground.clock import MovableClock, moment
from perdure._runtime.context import context as contexts
from perdure._runtime.restore import restore_run as restore
from perdure.errors import Incompatible
from perdure.runtime import Fingerprint, Token
from tests.continuity import returning
from tests.support.processes import ChildDied, Nursery
from tests.support.waiting import look_again

KEY = returning.KEY


pytestmark = pytest.mark.usefixtures("fresh_process")


@pytest.mark.req("R73", "R74", "R81", "R87", "R97", "R106")
def test_a_killed_agent_has_everything_around_it_again_when_another_process_claims_its_task(
    shared_url: str, children: Nursery, tmp_path: Path
) -> None:
    folder, here, there = tmp_path / "work", tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    first = {"RETURNING_DIES": "1", "RETURNING_MODE": "migrate", "HOME": str(tmp_path)}
    with pytest.raises(ChildDied):
        children.run(returning.carry_out, shared_url, str(folder), str(here), env=first)
    shutil.rmtree(folder)

    second = {"RETURNING_MODE": "another", "HOME": str(tmp_path)}
    found = children.run(returning.carry_out, shared_url, str(folder), str(there), env=second)

    assert found == {
        "mode": "migrate",
        "cwd": str(folder / "app"),
        "notes": "half done\n",
        "left": 3,
        "seen": ["once", "twice"],
    }


@pytest.mark.req("R90", "R106")
@pytest.mark.parametrize("dies_at", [1, 3, 4])
def test_a_process_that_dies_while_it_brings_everything_back_harms_nothing(
    dies_at: int, children: Nursery, tmp_path: Path
) -> None:
    folder, url = tmp_path / "work", f"sqlite://{tmp_path}/p.db"
    env = {"RETURNING_MODE": "migrate", "HOME": str(tmp_path)}
    with pytest.raises(ChildDied):
        children.run(returning.carry_out, url, str(folder), "/", env={**env, "RETURNING_DIES": "1"})
    shutil.rmtree(folder)
    with pytest.raises(ChildDied):
        children.run(returning.carry_out, url, str(folder), "/", dies_at, env=env)
    found = children.run(returning.carry_out, url, str(folder), "/", env=env)
    assert (found["notes"], found["left"], found["cwd"]) == ("half done\n", 3, str(folder / "app"))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".perdure-restore-")]


def _careful(app: Perdure, ran: list[str], prints: list[Fingerprint]) -> Any:
    @step(flush=True)
    async def work(what: str) -> str:
        ran.append(what)
        return what

    @durable(name="careful")
    async def careful() -> str:
        await work("before")
        rt = returning.around(app, (await app.tasks.handle("work")).uid)
        await rt.expect(*prints)
        await rt.save()
        await pause.approval("Go on?")
        return await work("after")

    return careful


async def _until_asked(app: Perdure, reason: str) -> str:
    """What the task asks, as soon as it asks for this reason."""
    while True:
        record = await app.tasks.get("work")
        assert record is not None and not record.is_finished
        if record.pause is not None and record.pause.reason == reason:
            return record.pause.message
        await look_again()


@pytest.mark.req("R91", "R93")
async def test_a_worker_pauses_a_task_whose_world_has_changed_and_goes_on_when_it_is_put_right(
    shared_url: str, tmp_path: Path
) -> None:
    ran: list[str] = []
    schema = tmp_path / "schema.sql"
    schema.write_text("one")
    async with Perdure(shared_url) as app:
        handle = await app.start("work", _careful(app, ran, [Fingerprint.file(schema)]))
        async with app.worker():
            await _until_asked(app, "human_approval")
            schema.write_text("two")
            await (await handle.task()).approve(by="ada")
            message = await _until_asked(app, "human_input")
            assert f"file {schema}" in message and ran == ["before"]
            schema.write_text("one")
            await (await handle.task()).resume()
            assert await handle.result() == "after"
    assert ran == ["before", "after"]


async def _approved(app: Perdure, function: Any) -> None:
    """The task, begun, paused at its approval, approved; and this process knows nothing of it any more."""
    handle = await app.start("work", function)
    async with app.worker():
        await _until_asked(app, "human_approval")
    await (await handle.task()).approve(by="ada")
    contexts.forget_contexts()


@pytest.mark.req("R91")
@pytest.mark.parametrize("policy", ["refuse", "warn", "rebuild", "continue"])
async def test_run_looks_at_the_world_before_anything_is_touched(
    shared_url: str, tmp_path: Path, policy: Literal["refuse", "warn", "rebuild", "continue"]
) -> None:
    ran: list[str] = []
    schema = tmp_path / "schema.sql"
    schema.write_text("one")
    async with Perdure(shared_url) as app:
        careful = _careful(app, ran, [Fingerprint.file(schema, policy=policy)])
        await _approved(app, careful)
        schema.write_text("two")
        if policy == "refuse":
            with pytest.raises(Incompatible, match="schema"):
                await app.run("work", careful)
            assert ran == ["before"]
            record = await app.tasks.get("work")
            assert record is not None and record.status == "running", "nothing of it was touched"
            schema.write_text("one")
        assert await app.run("work", careful) == "after"
        report = await restore.last_report(await app.tasks.handle("work"))
    assert report is not None and ran == ["before", "after"]
    changed = [finding.name for finding in report.plan.findings if not finding.same]
    assert changed == ([] if policy == "refuse" else [f"file {schema}"])
    assert bool(report.warnings) == (policy == "warn")
    assert ("changed: file" in report.for_model()) == (policy != "refuse")


@pytest.mark.req("R91")
async def test_what_only_the_code_can_look_at_is_looked_at_when_the_code_says_how(shared_url: str) -> None:
    ran: list[str] = []
    season = ["spring"]
    async with Perdure(shared_url) as app:
        careful = _careful(app, ran, [Fingerprint.custom("the season", lambda: season[0])])
        await _approved(app, careful)
        season[0] = "autumn"
        async with app.worker():
            message = await _until_asked(app, "human_input")
            assert "the season" in message and ran == ["before"]
            season[0] = "spring"
            await (await app.tasks.handle("work")).resume()
            assert await (await app.handle("work", careful)).result() == "after"
    assert ran == ["before", "after"]


@pytest.mark.req("R80", "R93")
async def test_an_expired_session_is_renewed_by_the_code_or_the_task_asks(
    shared_url: str, clock: MovableClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    answers = ["refused", "refused"]

    def renew() -> str:
        if answers:
            raise PermissionError(answers.pop())
        return "token-2"

    @durable(name="logged in")
    async def logged_in() -> str:
        rt = returning.around(app, (await app.tasks.handle("work")).uid)
        session = await rt.http("site", "https://site.example", refresh=renew, login=renew)
        if session.token is None:
            session.token = Token("token-1", moment(app._store.clock.now_ms()) + timedelta(seconds=5))
        await rt.save()
        await pause.approval("Go on?")
        assert session.token is not None
        return str(session.token.value)

    async with Perdure(shared_url, key=KEY) as app:
        await _approved(app, logged_in)
        clock.advance(seconds=30)
        async with app.worker():
            assert "A credential is needed" in await _until_asked(app, "human_input")
            await (await app.tasks.handle("work")).resume()
            assert await (await app.handle("work", logged_in)).result() == "token-2"


@pytest.mark.req("R99")
async def test_a_claimed_run_never_may_more_than_before(shared_url: str) -> None:
    may: list[bool] = []

    @durable(name="narrow")
    async def narrow() -> None:
        rt = returning.around(app, (await app.tasks.handle("work")).uid)
        if not may:
            rt.allow("read")
        await rt.save()
        may.append(rt.context.may("write"))
        await pause.approval("Go on?")

    async with Perdure(shared_url) as app:
        await _approved(app, narrow)
        await app.run("work", narrow)
    assert may == [False, False]


@pytest.mark.req("R75")
async def test_what_was_held_is_given_back_where_the_code_holds_it_again(shared_url: str, tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("0123456789")
    opened: set[Any] = set()

    @durable(name="reader")
    async def reader() -> str:
        rt = returning.around(app, (await app.tasks.handle("work")).uid)
        mine = data.open()
        file = rt.hold("data", "file_position", mine).live
        opened.update({mine, file})
        if file.tell() == 0:
            file.read(4)
        await rt.save()
        await pause.approval("Go on?")
        return str(file.read())

    async with Perdure(shared_url) as app:
        await _approved(app, reader)
        assert await app.run("work", reader) == "456789"
    for file in opened:
        file.close()
