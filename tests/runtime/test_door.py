"""The keeper's folder in memory may be tidied away; keeper and units are still found."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from perdure._runtime.keeper_client import client
from tests.runtime.kit import Place, until

ENV = {"HOME": "/", "PS1": "$ "}


@pytest.mark.req("R83")
@pytest.mark.parametrize("is_killed", [False, True], ids=["the keeper lives", "the keeper is killed"])
async def test_a_keeper_whose_folder_was_removed_is_found_again_with_its_units(
    place: Place, tmp_path: Path, is_killed: bool
) -> None:
    keeper = place.keeper
    folder = Path(place.socket).parent
    count = f"echo once >> {tmp_path}/count; echo $X"
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=ENV)
        await shell.run("X=42")
        first, pid = await shell.run(count, key="count"), shell.record.pid
        client.client_for(place.home).close()
    shutil.rmtree(folder)
    if is_killed:
        os.kill(keeper, 9)
    for _ in range(2):  # and it may be removed again
        async with place.runtime() as rt:
            shell = await rt.shell("main", env=ENV)
            assert (shell.level, shell.record.pid) == ("kept", pid)
            assert (await shell.run("echo $X")).output == "42\n"
            again = await shell.run(count, key="count")
            assert again.exit_code == first.exit_code and (tmp_path / "count").read_text() == "once\n"
            client.client_for(place.home).close()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "sock").stat().st_mode) == 0o600
        shutil.rmtree(folder)


@pytest.mark.req("R83")
async def test_a_folder_that_somebody_else_has_made_meanwhile_is_not_used(place: Place, tmp_path: Path) -> None:
    keeper = place.keeper
    folder = Path(place.socket).parent
    client.client_for(place.home).close()
    shutil.rmtree(folder)
    folder.symlink_to(tmp_path)
    os.kill(keeper, 9)
    try:
        log = place.home / "keeper.log"
        until(lambda: "now belongs to another user" in log.read_text())
        assert list(tmp_path.glob("sock")) == []
    finally:
        folder.unlink()
