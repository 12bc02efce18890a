"""Where a task goes on under another keeper: nothing is made twice, and nothing that was elsewhere is called kept."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, Secret, durable, pause, runtime
from perdure._runtime import Runtime, Shell
from perdure._runtime.bundles import shells_along, task_bundle
from perdure._runtime.bundles.task_bundle import bring_in, export
from perdure._runtime.context.context import forget_contexts
from perdure._runtime.keeper_client import client, keeper_place
from perdure._runtime.sessions import lone_statements
from perdure._runtime.units.unit_notes import UnitNote
from perdure.errors import Conflict, EffectUncertain, RequestFailed, UnitEnded
from tests.runtime.kit import Place, until
from tests.runtime.test_requests import Target
from tests.support.folders import remove_tree
from tests.support.processes import ChildDied, Link, Nursery

pytestmark = pytest.mark.req("R79")


@pytest.fixture
def target() -> Iterator[Target]:
    target = Target()
    target.go.set()
    yield target
    target.server.shutdown()
    target.server.server_close()


def move(place: Place) -> None:
    """As on another machine with the same store: its keeper has never heard of the task."""
    place.clear()
    client.client_for(place.home).close()
    client._clients.clear()
    remove_tree(place.home)
    forget_contexts()


@asynccontextmanager
async def both_units(place: Place, target: Target, counted: Path) -> AsyncIterator[tuple[Runtime, Any, Any]]:
    async with place.runtime() as rt:
        request = await rt.request("plan", "POST", target.url, json={"a": 1})
        yield rt, request, await rt.command(["sh", "-c", f"echo ran >> {counted}"], key="deploy")


async def test_an_answer_that_was_read_is_there_for_the_next_keeper_and_nothing_is_sent(
    place: Place, target: Target, tmp_path: Path
) -> None:
    counted = tmp_path / "counted"
    async with both_units(place, target, counted) as (_, request, command):
        assert await request.read() == b"first second"
        assert (await command.result()).exit_code == 0
    move(place)
    async with both_units(place, target, counted) as (_, request, command):
        assert (request.level, request.verdict.reason) == ("kept", "it was answered; the answer is kept in the store")
        assert (await request.head()).status == 200
        assert [part async for part in request.chunks(after=6)] == [b"second"]
        assert command.level == "lost"
        assert "by a keeper that is not here" in command.verdict.reason
        with pytest.raises(UnitEnded, match="not made twice"):
            await command.result()
        await command.end()
    assert len(target.asked) == 1
    assert counted.read_text() == "ran\n"


async def test_an_answer_that_was_not_read_is_lost_and_the_request_is_not_sent_again(
    place: Place, target: Target, tmp_path: Path
) -> None:
    async with both_units(place, target, tmp_path / "counted") as (_, request, _):
        await request.head()
    move(place)
    async with both_units(place, target, tmp_path / "counted") as (rt, request, _):
        assert request.level == "lost"
        with pytest.raises(RequestFailed) as told:
            await request.read()
        assert told.value.sent
        with pytest.raises(Conflict, match="as another one"):
            await rt.request("plan", "POST", target.url, json={"a": 2})
        assert len(target.asked) == 1
        await rt.release("plan")
        again = await rt.request("plan", "POST", target.url, json={"a": 2})
        assert await again.read() == b"first second"
    assert len(target.asked) == 2


async def test_a_durable_function_goes_on_elsewhere_without_buying_again(
    place: Place, target: Target, tmp_path: Path
) -> None:
    counted = tmp_path / "counted"

    @durable(name=f"buys-{tmp_path.name}")
    async def buys() -> list[Any]:
        rt = await runtime.open()
        request = await rt.request("plan", "POST", target.url, json={"a": 1})
        said = await request.read()
        command = await rt.command(["sh", "-c", f"echo ran >> {counted}"], key="deploy")
        ended = await command.result()
        await pause.approval("Go on?")
        return [said.decode(), ended.exit_code, request.level, command.level]

    async with Perdure(place.url) as app:
        await app.start("buys", buys)
        async with app.worker():
            await app.tasks.wait_for("buys", status="paused")
    move(place)
    async with Perdure(place.url) as app:
        await (await app.tasks.handle("buys")).approve(by="ada")
        async with app.worker():
            record = await app.tasks.wait_for("buys", status="completed")
        assert record.result == ["first second", 0, "kept", "lost"]
    assert len(target.asked) == 1
    assert counted.read_text() == "ran\n"


async def test_a_command_of_a_shell_by_key_is_run_once_whichever_keeper_has_the_shell(
    place: Place, tmp_path: Path
) -> None:
    counted = tmp_path / "counted"
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": str(tmp_path)})
        assert (await shell.run(f"echo ran >> {counted}", key="deploy")).exit_code == 0
    move(place)
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": str(tmp_path)})
        with pytest.raises(EffectUncertain, match="by a keeper that is not here"):
            await shell.run(f"echo ran >> {counted}", key="deploy")
        with pytest.raises(Conflict, match="as another one"):
            await shell.run("true", key="deploy")
        assert (await shell.run("echo other", key="another")).output == "other\n"
        assert counted.read_text() == "ran\n"
        await rt.release("main")
        shell = await rt.shell("main", env={"HOME": str(tmp_path)})
        assert (await shell.run(f"echo ran >> {counted}", key="deploy")).exit_code == 0
    assert counted.read_text() == "ran\nran\n"


@durable(name="gives-to-a-shell")
async def gives(what: str, counted: str) -> None:
    rt = await runtime.open()
    shell = await rt.shell("main", env={"HOME": "/nonexistent"})
    if what == "run":
        await shell.run(f"echo ran >> {counted}")
    else:
        await shell.send(f"echo ran >> {counted}\n")


def _give_and_die(_: Link, url: str, what: str, counted: str) -> None:
    act = getattr(Shell, f"_{what}")

    async def given(*args: Any) -> None:
        await act(*args)
        until(lambda: Path(counted).exists() and Path(counted).read_text())
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(Shell, f"_{what}", given)

    async def work() -> None:
        async with Perdure(url) as app:
            await app.run("gives", gives, what, counted)

    asyncio.run(work())


@pytest.mark.parametrize("what", ["run", "send"])
async def test_what_a_former_shell_was_given_is_asked_about_and_not_given_to_the_next(
    place: Place, tmp_path: Path, what: str, children: Nursery
) -> None:
    counted = tmp_path / "counted"
    with pytest.raises(ChildDied):
        children.run(_give_and_die, place.url, what, str(counted))
    move(place)
    async with Perdure(place.url) as app, app.worker():
        record = await app.tasks.wait_for("gives", status="paused")
    assert record.pause is not None and record.pause.reason == "human_input"
    assert counted.read_text() == "ran\n"


async def test_a_bundle_takes_along_what_was_made_once(place: Place, target: Target, tmp_path: Path) -> None:
    async with both_units(place, target, tmp_path / "counted") as (_, request, _):
        await request.read()
    async with Perdure(place.url) as app:
        await export(app.tasks, "work", tmp_path / "work.perdure", move=True)
    other = Place(tmp_path / "other" / "perdure.db")
    try:
        async with Perdure(other.url) as app:
            await bring_in(app.tasks, tmp_path / "work.perdure")
            rt = await app.runtime("work")
            assert await (await rt.request("plan", "POST", target.url, json={"a": 1})).read() == b"first second"
        assert len(target.asked) == 1
    finally:
        other.clear()


async def test_what_was_noted_and_never_begun_is_made_by_the_same_keeper(
    place: Place, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.runtime() as rt:
        with monkeypatch.context() as dies:
            dies.setattr("perdure._runtime.task_runtime.opened", _dies)
            with pytest.raises(asyncio.CancelledError):
                await rt.request("plan", "POST", target.url)
        request = await rt.request("plan", "POST", target.url)
        assert await request.read() == b"first second"
    assert len(target.asked) == 1


async def _dies(*_: Any, **__: Any) -> Any:
    raise asyncio.CancelledError


async def test_what_another_keeper_had_is_not_called_kept(place: Place, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    file = tmp_path / "notes"
    file.write_text("a line\nanother\n")

    async def opened(rt: Runtime) -> dict[str, tuple[str, str]]:
        units: list[Any] = [
            await rt.shell("main", env=env),
            await rt.service("web", ["sleep", "1000"]),
            await rt.file(file, "rb"),
            await rt.listener(0),
            await rt.pipe("queue"),
            await rt.sqlite("books", tmp_path / "books.db"),
        ]
        return {unit.name: (unit.verdict.level, unit.verdict.reason) for unit in units}

    async with place.runtime() as rt:
        assert {level for level, _ in (await opened(rt)).values()} == {"kept"}
    move(place)
    async with place.runtime() as rt:
        first = await opened(rt)
        assert first.pop("books")[0] == "lost"
        assert {level for level, _ in first.values()} == {"rebuilt"}
        assert all(
            why.endswith("by a keeper that is not here; a new one was made in its place") for _, why in first.values()
        )
        again = await opened(rt)
        assert {level for level, _ in again.values()} == {"rebuilt", "lost"}
    forget_contexts()
    async with place.runtime() as rt:
        assert {level for level, _ in (await opened(rt)).values()} == {"kept"}


@pytest.mark.parametrize("kind", ["sqlite", "pipe"])
async def test_a_process_that_died_before_it_noted_the_new_one_leaves_no_false_word(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    async def opened(rt: Runtime) -> Any:
        return await (rt.sqlite("books", tmp_path / "books.db") if kind == "sqlite" else rt.pipe("queue"))

    async with place.runtime() as rt:
        await opened(rt)
    move(place)
    async with place.runtime() as rt:
        with monkeypatch.context() as dies:
            dies.setattr(UnitNote, "taken_over", _dies)
            with pytest.raises(asyncio.CancelledError):
                await opened(rt)
    forget_contexts()
    async with place.runtime() as rt:
        unit = await opened(rt)
        assert unit.verdict.level == ("lost" if kind == "sqlite" else "rebuilt")
        assert "a new one was made in its place" in unit.verdict.reason


async def test_a_unit_that_comes_back_to_a_keeper_twice_is_the_older_one_each_time(
    place: Place, tmp_path: Path
) -> None:
    here, there, notes = place.home, tmp_path / "other" / "keeper", tmp_path / "notes"
    notes.write_text("a line\n")

    async def opened(home: Path) -> list[str]:
        forget_contexts()
        with pytest.MonkeyPatch.context() as moved:
            moved.setattr(keeper_place, "home_of", lambda _: home)
            async with place.runtime() as rt:
                units: list[Any] = [await rt.pipe("queue"), await rt.file(notes, "rb")]
                units.append(await rt.sqlite("books", tmp_path / "books.db"))
                return [" ".join([unit.verdict.level, *unit.verdict.differs]) for unit in units]

    try:
        await opened(here)
        assert [told.split()[0] for told in await opened(there)] == ["rebuilt", "rebuilt", "lost"]
        for home in (here, there, here):
            assert all(told.startswith("kept") and "this is older" in told for told in await opened(home))
    finally:
        away = client.find(there)
        if away is not None:
            await away.ask("stop", units_too=True)
            away.close()


@pytest.mark.parametrize("name", ["books", "sqlite:books"])
async def test_a_release_forgets_the_statements_of_its_session_alone(place: Place, tmp_path: Path, name: str) -> None:
    async with place.runtime() as rt:
        await rt.sqlite("books", tmp_path / "books.db")
        shelf = lone_statements._shelf(rt._store, "work", rt._uid)
        sent = lone_statements.Sent(ledger="a", line="a/0", scope="step#1|books", number=1, text="INSERT")
        for key in ("books\n1", "other\n1"):
            assert await shelf.add(key, sent)
        await rt.release(name)
        assert [kept.key for kept in await shelf.all()] == ["other\n1"]


# ── shells in a bundle ───────────────────────────────────────────────────────────────────────────

KEY = "test-key:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
FILLS = "greet() { echo hello; }; WORD=kept; umask 027"
SAYS = 'greet; echo "${WORD-none} $(umask) ${API_TOKEN-none}"'


@asynccontextmanager
async def elsewhere(tmp_path: Path, bundle: Path, key: str | None, **how: bool) -> AsyncIterator[Runtime]:
    other = Place(tmp_path / "other" / "perdure.db")
    try:
        async with Perdure(other.url, key=key) as app:
            await bring_in(app.tasks, bundle, **how)
            yield await app.runtime("work")
    finally:
        other.clear()


async def test_a_shell_is_made_elsewhere_as_it_was_when_it_left_and_fetches_its_secrets_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, bundle = tmp_path / "gone", tmp_path / "work.perdure"
    gone.mkdir()
    monkeypatch.setenv("API_TOKEN", "token-of-here")
    here = Place(tmp_path / "here" / "perdure.db")
    env = {"HOME": str(tmp_path), "API_TOKEN": Secret("env", "API_TOKEN").reference}
    async with Perdure(here.url, key=KEY) as app:
        await app.tasks.open("work", state={})
        shell = await (await app.runtime("work")).shell("main", env=env)
        await shell.run(f"{FILLS}; cd {gone}")
        told = await export(app.tasks, "work", bundle, move=True)
        assert told.is_signed and "only what is in its shells travels" in told.notes[0]
    here.clear()
    forget_contexts()
    gone.rmdir()
    monkeypatch.setenv("API_TOKEN", "token-of-there")
    async with elsewhere(tmp_path, bundle, KEY) as rt:
        shell = await rt.shell("main", rebuild="auto")
        assert shell.level == "rebuilt"
        assert (await shell.run(SAYS)).output == "hello\nkept 0027 token-of-there\n"
        assert any(f"directory {gone} is gone" in line for line in shell.verdict.differs)
        assert (await rt.shell("main")).level == "rebuilt", "told for as long as this attempt goes on"


async def test_nothing_of_a_shell_travels_without_a_key(place: Place, tmp_path: Path) -> None:
    bundle = tmp_path / "work.perdure"
    async with place.runtime() as rt:
        await (await rt.shell("main", env={"HOME": str(tmp_path)})).run(FILLS)
    async with Perdure(place.url) as app:
        await export(app.tasks, "work", bundle, move=True)
    forget_contexts()
    async with elsewhere(tmp_path, bundle, None, trust=True) as rt:
        shell = await rt.shell("main", env={"HOME": str(tmp_path)}, rebuild="auto")
        assert shell.level == "rebuilt" and "all that the former one had in it" in shell.verdict.differs
        assert "kept" not in (await shell.run(SAYS)).output


async def test_what_an_unsigned_bundle_says_of_a_shell_is_not_used(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "work.perdure"
    async with place.runtime() as rt:
        await (await rt.shell("main", env={"HOME": str(tmp_path)})).run(FILLS)
    async with Perdure(place.url) as app:
        task = await app.tasks.handle("work")
        rows = task_bundle.dump

        async def with_shells(store: Any, uid: str) -> Any:
            found = await rows(store, uid)
            shells_along.put_along(store, uid, found, (await shells_along.contents_of_shells(task))[0])
            return found

        monkeypatch.setattr(task_bundle, "dump", with_shells)
        await export(app.tasks, "work", bundle, move=True)
    forget_contexts()
    async with elsewhere(tmp_path, bundle, None) as rt:
        shell = await rt.shell("main", env={"HOME": str(tmp_path)}, rebuild="auto")
        assert "rebuilt_from" not in shell.record.facts
        assert "kept" not in (await shell.run(SAYS)).output
