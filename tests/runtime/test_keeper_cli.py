"""The keeper and its units from the command line, and what doctor says of them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure._runtime.keeper_client import keeper_control as keeping
from perdure.cli import main
from perdure.keeper.process.processes import COOKIE
from tests.runtime.kit import Place, is_alive, until


@pytest.fixture
def asked(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command answers, as JSON."""
    monkeypatch.setenv("PERDURE_URL", place.url)

    def ask(*args: str) -> Any:
        capsys.readouterr()
        code = main([*args, "--json"])
        said = capsys.readouterr()
        assert code == 0, said.err
        return json.loads(said.out)

    return ask


@pytest.mark.req("R146")
async def test_units_and_the_keeper_are_shown_replaced_and_stopped(place: Place, asked: Any) -> None:
    assert asked("keep", "status") is None and asked("units")["items"] == []
    async with place.runtime("work") as rt:
        shell = await rt.shell("main", ["cat"])
        [unit] = asked("units", "work")["items"]
        assert (unit["task"], unit["name"], unit["kind"], unit["pid"]) == ("work", "main", "shell", shell.record.pid)
        status = asked("keep", "status")
        assert status["alive"] == 1 and "restart of the machine" in status["ends_with"]
        assert asked("keep", "restart") == {"replaced": True}
        assert main(["keep", "stop"]) == 4  # units live
        assert is_alive(shell.record.pid)
        assert asked("keep", "stop", "--units") == {"stopped": True}
        until(lambda: not is_alive(shell.record.pid))


async def test_python_and_python3_of_one_environment_are_the_same_perdure(
    place: Place, asked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.ask("status")
    environment = Path(sys.executable).parent.parent
    (tmp_path / "linked").symlink_to(environment)
    for other in (environment / "bin" / "python", environment / "bin" / "python3", tmp_path / "linked/bin/python3"):
        monkeypatch.setattr(sys, "executable", str(other))
        assert not asked("keep", "status")["is_other"]
        assert not [item for item in asked("doctor")["items"] if "another perdure" in item["what"]]
    another = tmp_path / "another"  # a second environment, of the same interpreter
    (another / "bin").mkdir(parents=True)
    (another / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (another / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setattr(sys, "executable", str(another / "bin" / "python"))
    assert asked("keep", "status")["is_other"]


@pytest.mark.req("R146")
async def test_doctor_says_where_the_keeper_lives_and_names_what_was_left_behind(place: Place, asked: Any) -> None:
    async with place.runtime("work") as rt:
        shell = await rt.shell("main", ["bash", "-c", "setsid -f sh -c 'echo left; exec sleep 1000'; exec cat"])
        await shell.expect("left")
        os.kill(shell.record.pid, 9)
        await shell.ended()
        found = asked("doctor")["items"]
        told = {item["subject"]: item["what"] for item in found}
        assert f"process {place.keeper} under anchor {place.anchor}" in told["keeper"]
        assert f"was started by unit {shell.uid}" in told["orphan"]
        os.kill(int(told["orphan"].split()[1]), 9)


async def test_units_of_ended_tasks_are_swept(place: Place, asked: Any) -> None:
    async with place.runtime("work") as rt:
        shell = await rt.shell("main", ["cat"])
    asked("complete", "work")
    assert "its task has ended" in " ".join(item["what"] for item in asked("doctor")["items"])
    asked("units", "--sweep")
    until(lambda: not is_alive(shell.record.pid))


async def test_a_unit_past_its_limit_is_ended_and_says_so(place: Place) -> None:
    async with place.runtime("work") as rt:
        shell = await rt.shell("short", ["cat"], limits={"seconds": 0.01})
        until(lambda: not is_alive(shell.record.pid))
        large = await rt.shell("large", ["cat"], limits={"memory": 1000})
        until(lambda: not is_alive(large.record.pid))
        await large.ended()
        assert "limit" in (await shell.refresh()).facts["why"] and "memory" in (await large.refresh()).facts["why"]


def test_what_would_end_a_keeper_is_told_from_where_it_lives(tmp_path: Any) -> None:
    def told(first: str, group: str) -> str:
        (tmp_path / "1").mkdir(exist_ok=True)
        (tmp_path / "7").mkdir(exist_ok=True)
        (tmp_path / "1" / "comm").write_text(f"{first}\n")
        (tmp_path / "7" / "cgroup").write_text(f"0::{group}\n")
        return keeping.what_would_end(7, tmp_path)

    assert "the end of agent.service" in told("systemd", "/system.slice/agent.service")
    assert told("systemd", "/system.slice/run-r42.scope") == "a restart of the machine"
    assert "logout" in told("systemd", "/user.slice/user-1000.slice/run-r42.scope")
    assert "first process (tini)" in told("tini", "/")


def test_the_cookie_is_the_one_doctor_looks_for() -> None:
    assert COOKIE == "PERDURE_UNIT"
