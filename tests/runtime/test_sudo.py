"""A real sudo that asks for a password, through the death of the agent and of the keeper."""

from __future__ import annotations

import os
import pwd
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from perdure._runtime.keeper_client import client
from tests.runtime.kit import Place, until_text
from tests.support import packages


class User(NamedTuple):
    name: str
    password: str


@pytest.fixture
def sudoer() -> Iterator[User]:
    """A user who may use sudo, by password, until the test ends."""
    if os.getuid() != 0:
        pytest.skip("needs root to make a user who may use sudo")
    packages.need("sudo")
    user = User(f"pd{secrets.token_hex(4)}", secrets.token_hex(12))
    rules = Path(f"/etc/sudoers.d/{user.name}")
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", user.name], check=True)
    try:
        subprocess.run(["chpasswd"], input=f"{user.name}:{user.password}\n", text=True, check=True)
        rules.write_text(f"{user.name} ALL=(ALL) ALL\n")
        rules.chmod(0o440)
        yield user
    finally:
        rules.unlink(missing_ok=True)
        subprocess.run(["userdel", "--remove", "--force", user.name], check=False, capture_output=True)


@pytest.mark.req("R34")
@pytest.mark.req("R83")
async def test_sudo_still_waits_for_its_password_and_takes_it(place: Place, sudoer: User, tmp_path: Path) -> None:
    found = pwd.getpwnam(sudoer.name)
    become = ["setpriv", f"--reuid={found.pw_uid}", f"--regid={found.pw_gid}", "--init-groups", "--", "bash", "-c"]
    ask = [*become, "cd /; sudo -k; sudo sh -c 'echo granted to $(id -un)'; exec cat"]
    async with place.runtime() as rt:
        shell = await rt.shell("install", ask)
        await until_text(shell, r"password for|Password:")
        assert await shell.waiting() == "secret"
        client.client_for(place.home).close()
    place.kill_keeper()
    async with place.runtime() as rt:
        shell = await rt.shell("install", ask)
        assert (shell.level, await shell.waiting()) == ("kept", "secret")
        await shell.answer(sudoer.password)
        await until_text(shell, "granted to root")
        for folder in (place.home, Path(place.socket).parent, tmp_path):
            files = [file for file in folder.rglob("*") if file.is_file()]
            assert not [file for file in files if sudoer.password.encode() in file.read_bytes()]
        assert sudoer.password not in (await shell.read()).text
