"""An old keeper with a new client, and the reverse: they understand each other, or say clearly that they do not."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure import Perdure, errors, keeper
from perdure._runtime.keeper_client import client
from perdure._runtime.keeper_client import keeper_control as keeping
from perdure._runtime.keeper_client import keeper_start as starting
from perdure._runtime.keeper_client import other_versions as forcing
from tests.runtime.kit import Place
from tests.runtime.test_requests import Target

OTHER = 99
# What keepers from before the move into sub-rooms start and read. They go on doing so after an upgrade in their place.
FORMER = {
    "perdure.keeper.kinds.sessions": "PROGRAMS['sqlite'] = 'perdure.keeper.sqliteholder'",
    "perdure.keeper.kinds.requests": "_FETCHER = str(keeper / 'fetcher.py')",
    "perdure.keeper.kinds.shell.shell_state": "_RC = keeper / 'shell.bash'",
}


def argv_of_another(versions: str) -> list[str]:
    """A real keeper that speaks other versions."""
    *python, start, src = keeper.keeper_argv(sys.executable)
    said = f"from perdure.keeper.core import wire; wire.VERSIONS = {versions}; "
    other = start.replace("from perdure", f"{said}from perdure", 1)
    return [*python, other, src]


def argv_of_former() -> list[str]:
    """A real keeper that starts its programs under their former names and from their former places."""
    *python, start, src = keeper.keeper_argv(sys.executable)
    lines = [f"import {module} as module; module.{change}; " for module, change in FORMER.items()]
    said = f"import pathlib; keeper = pathlib.Path({src!r}, 'perdure', 'keeper'); {''.join(lines)}"
    return [*python, start.replace("from perdure", f"{said}from perdure", 1), src]


async def restart(place: Place) -> None:
    """As `perdure keep restart` does."""
    async with Perdure(place.url) as app:
        assert await keeping.replace(app._store)


@pytest.mark.parametrize("is_newer", [True, False], ids=["a newer keeper", "a newer client"])
async def test_sides_without_a_common_version_say_so_and_a_restart_brings_them_together(
    place: Place, monkeypatch: pytest.MonkeyPatch, is_newer: bool
) -> None:
    theirs, ours = ((OTHER,), (1,)) if is_newer else ((1,), (OTHER,))
    monkeypatch.setattr(starting, "keeper_argv", lambda python: argv_of_another(str(theirs)))
    monkeypatch.setattr(keeper, "VERSIONS", theirs)
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": "/"})
        await shell.run("FOO=kept")
        pid = shell.record.pid
    client.client_for(place.home).close()

    monkeypatch.setattr(keeper, "VERSIONS", ours)
    async with place.runtime() as rt:
        with pytest.raises(errors.KeeperUnavailable) as refused:
            await rt.shell("main")
        assert f"speaks versions {list(theirs)}, this perdure {list(ours)}" in str(refused.value)
        assert "keep restart" in str(refused.value)

    monkeypatch.setattr(
        "perdure._runtime.keeper_client.keeper_control.keeper_argv", lambda python: argv_of_another(str(ours))
    )
    await restart(place)
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": "/"})
        assert (shell.level, shell.record.pid) == ("kept", pid)
        assert (await shell.run("echo $FOO")).output == "kept\n"
        place.clear()


@pytest.mark.parametrize("theirs", [(1, OTHER), (OTHER, 1)])
async def test_sides_with_a_common_version_speak_that(
    place: Place, monkeypatch: pytest.MonkeyPatch, theirs: tuple[int, ...]
) -> None:
    monkeypatch.setattr(starting, "keeper_argv", lambda python: argv_of_another(str(theirs)))
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": "/"})
        assert (await shell.run("echo understood")).output == "understood\n"
        assert shell._client.about["version"] == 1


@pytest.fixture
def answering() -> Iterator[Target]:
    target = Target()
    target.go.set()
    yield target
    target.server.shutdown()
    target.server.server_close()


async def test_a_keeper_from_before_the_move_serves_this_client_and_is_replaced(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answering: Target
) -> None:
    monkeypatch.setattr(starting, "keeper_argv", lambda python: argv_of_former())
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": "/"})
        await shell.run("FOO=kept")
        session = await rt.sqlite("notes", tmp_path / "notes.db")
        await session.execute("CREATE TABLE notes (text)")
        await session.execute("BEGIN IMMEDIATE")
        await session.execute("INSERT INTO notes VALUES ('open')")
        assert await (await rt.request("bought", "POST", answering.url)).read() == b"first second"
        pid = shell.record.pid

    monkeypatch.setattr(starting, "keeper_argv", keeper.keeper_argv)
    await restart(place)
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": "/"})
        assert (shell.level, shell.record.pid) == ("kept", pid)
        assert (await shell.run("echo $FOO")).output == "kept\n"
        session = await rt.sqlite("notes", tmp_path / "notes.db")
        assert (session.level, session.in_transaction) == ("kept", True)
        assert await session.fetch("SELECT text FROM notes") == [("open",)]
        assert await (await rt.request("bought", "POST", answering.url)).read() == b"first second"
    assert len(answering.asked) == 1


async def test_a_keeper_that_hangs_is_replaced_and_its_units_live_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": "/"})
        await shell.run("FOO=kept")
        hung = place.keeper
        os.kill(hung, signal.SIGSTOP)
        monkeypatch.setattr(forcing, "PATIENCE_SECONDS", 0.3)
        await restart(place)
    async with place.runtime() as rt:
        assert (await (await rt.shell("main")).run("echo $FOO")).output == "kept\n"
        assert place.keeper != hung


def test_what_hangs_is_only_killed_if_it_is_the_keeper(place: Place, tmp_path: Path) -> None:
    place.ask("status")
    with pytest.raises(errors.KeeperUnavailable, match="was not found"):
        forcing.kill_keeper(tmp_path)
