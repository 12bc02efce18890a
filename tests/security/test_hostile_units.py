"""What a unit sees: nothing of other units' terminals, and none of the agent's keys."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perdure import Perdure
from perdure._ground.secrets import crypto
from perdure._runtime.keeper_client import keeper_checkup as checkup
from perdure._runtime.secrets import environment
from perdure._runtime.secrets.environment import Rules
from tests.runtime.kit import Place, until
from tests.runtime.test_isolation import needs_namespaces

pytestmark = [pytest.mark.req("R143"), pytest.mark.skipif(sys.platform != "linux", reason="Linux only")]
ENV = {"HOME": "/", "PS1": "$ "}
AGENTS_OWN = {
    "PERDURE_KEY": crypto.generate(),
    "PERDURE_URL": "postgresql://ada:hunter22@db/app",
    "LLM_API_KEY": "hunter22",
    "GITHUB_TOKEN": "hunter22",
    "DATABASE_URL": "postgresql://ada:hunter22@db/app",
    "SSH_AUTH_SOCK": "/tmp/agent",
    "APP_MODE": "of the agent",
    "HTTPS_PROXY": "http://ada:hunter22@proxy:3128",
}


@needs_namespaces
async def test_an_isolated_unit_can_open_no_terminal_of_another(place: Place) -> None:
    async with place.runtime() as rt:
        other = await rt.shell("other", env=ENV)
        tty = (await other.run("tty")).output.strip()
        assert tty.startswith("/dev/pts/")
        shell = await rt.shell("main", env=ENV, isolate=True)
        assert (await shell.run("ls /dev/pts")).output == "ptmx\n"
        await shell.run(f"echo INJECTED > {tty}")
        assert "INJECTED" not in (await other.run("echo on")).output
        assert (await shell.run(f"head -c1 <{tty}", timeout=None)).exit_code != 0
        # It still has terminals of its own, and the one it is on.
        made = f"{sys.executable} -c 'import pty, os; print(os.ttyname(pty.openpty()[1]))'"
        assert (await shell.run(made)).output == "/dev/pts/0\n"
        assert (await shell.run("echo here > /dev/tty")).exit_code == 0


@needs_namespaces
async def test_no_process_queue_or_shared_memory_of_others_is_seen(place: Place, tmp_path: Path) -> None:
    async with place.runtime() as rt:
        other = await rt.shell("other", env=ENV)
        await other.run("echo hidden > /dev/shm/of-another; ipcmk -Q >/dev/null")
        try:
            shell = await rt.shell("main", env=ENV, isolate=True)
            assert "of-another" not in (await shell.run("ls /dev/shm")).output
            assert "0x" not in (await shell.run("ipcs -q")).output
            mounts = (await shell.run("grep -c ' proc ' /proc/mounts")).output
            assert int(mounts) >= 1 and (await shell.run("ls -d /proc/[0-9]* | wc -l")).output.strip() in "2345"
        finally:
            await other.run("rm -f /dev/shm/of-another; ipcrm -a 2>/dev/null")


@pytest.mark.req("R142")
async def test_a_unit_gets_none_of_the_agents_keys(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in AGENTS_OWN.items():
        monkeypatch.setenv(name, value)
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={**ENV, "GIVEN_TOKEN": "given-value"})
        said = (await shell.run("env")).output
        assert "hunter22" not in said and not [name for name in AGENTS_OWN if f"{name}=" in said]
        assert "GIVEN_TOKEN=given-value" in said and "PATH=" in said
        out = place.home.parent / "env"
        await rt.service("web", ["sh", "-c", f"env > {out}.new; mv {out}.new {out}; sleep 1000"])
        until(out.exists)
        assert "hunter22" not in out.read_text() and "PERDURE_KEY" not in out.read_text()
        rt.env["APP_MODE"] = "set by the task"
        rt.context.rules = Rules(inherit=["GITHUB_*"])
        said = (await (await rt.shell("second", env=ENV)).run("env")).output
        assert "APP_MODE=set by the task" in said and "GITHUB_TOKEN=hunter22" in said and "LLM_API_KEY" not in said


def test_what_is_inherited_is_on_the_list_and_does_not_look_secret() -> None:
    found = {**AGENTS_OWN, "PATH": "/bin", "LC_ALL": "C", "HTTP_PROXY": "http://proxy:3128"}
    assert environment.inherited(found, environ=found) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "HTTP_PROXY": "http://proxy:3128",
    }
    assert environment.inherited({**found, "MODE": "x"}, environ=found)["MODE"] == "x"


@needs_namespaces
async def test_the_doctor_says_what_isolated_units_share(place: Place) -> None:
    async with Perdure(place.url) as app:
        await app.tasks.open("work", state={})
        rt = await app.runtime("work")
        await rt.shell("open", env=ENV)
        assert "isolation" not in [one.subject for one in await checkup.examine(app._store)]
        await rt.shell("closed", env=ENV, isolate=True)
        [said] = [one.what for one in await checkup.examine(app._store) if one.subject == "isolation"]
        assert said.startswith("1 isolated units; they share") and "the network" in said
