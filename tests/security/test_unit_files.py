"""What a unit can write is read as what it is: bytes of a stranger."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from perdure._runtime.keeper_client import client
from perdure._runtime.units.shell import _id
from tests.runtime.kit import Place, until
from tests.runtime.test_isolation import needs_namespaces
from tests.torture import unit_files

pytestmark = [pytest.mark.req("R143"), pytest.mark.skipif(sys.platform != "linux", reason="Linux only")]
ENV = {"HOME": "/", "PS1": "$ "}
SECRET = "a line of a file outside"


@pytest.mark.req("R83")
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_put_into_the_files_of_units_the_keeper_and_the_others_live_on(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_files, "ROUNDS", 3)
    unit_files.run(seed)


@needs_namespaces
async def test_nothing_is_written_through_a_link_that_an_isolated_shell_has_planted(
    place: Place, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text(SECRET)
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=ENV, isolate=True)
        folder = Path(place.socket).parent / shell.uid
        for name in (_id("build"), f"{_id('build')}.new", "inputs.new", "commands/new"):
            await shell.run(f"mkdir -p {folder}/commands; ln -sf {victim} {folder}/{name}")
        assert (await shell.run("echo built", key="build")).output == "built\n"
        assert victim.read_text() == SECRET


@needs_namespaces
async def test_no_link_of_an_isolated_shell_is_followed_when_it_is_read(place: Place, tmp_path: Path) -> None:
    hidden = place.home.parent / "hidden"  # in .perdure, which the shell does not see
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=ENV, isolate=True)
        hidden.write_text(f"declare -- STOLEN={SECRET!r}\n{SECRET}\n")
        folder = Path(place.socket).parent / shell.uid
        assert (await shell.run(f"cat {hidden}")).exit_code != 0
        await shell.run(f"rm -f {folder}/history; ln -s {hidden} {folder}/history")
        count = len(await shell.commands())
        await shell.send("true\n")
        until(
            lambda: [one["code"] for one in place.ask("do", unit=shell.uid, do="commands")["commands"]][count:] == [0]
        )
        told = "".join(one.command for one in await shell.commands())
        kept = [file for file in place.home.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
        assert SECRET not in told and kept == []


@needs_namespaces
@pytest.mark.parametrize("name", ["state.0", "state.1", "history", "inputs", "commands/x.json", "begun", "commands"])
@pytest.mark.parametrize("how", ["mkfifo", "mkdir", "ln -s /dev/zero", "truncate -s 1T", "echo {[ >"])
async def test_an_isolated_shell_cannot_hold_up_the_keeper_or_the_others(place: Place, name: str, how: str) -> None:
    async with place.runtime() as rt:
        other = await rt.shell("other", env=ENV)
        await other.run("X=42")
        shell = await rt.shell("main", env=ENV, isolate=True)
        folder = Path(place.socket).parent / shell.uid
        script = f"cd {folder} && mkdir -p commands && mv {name} /tmp/$$ 2>/dev/null; {how} {folder}/{name}"
        await shell.send(f"sh -c '{script}'; set +o history\n")
        await shell.send("true\n")
        assert (await other.run("echo $X")).output == "42\n"
        await asyncio.to_thread(place.kill_keeper)
        client.client_for(place.home).close()
    async with place.runtime() as rt:
        other = await rt.shell("other", env=ENV)
        assert (other.level, (await other.run("echo $X")).output) == ("kept", "42\n")
        until(lambda: len(place.ask("units")["units"]) == 2)
