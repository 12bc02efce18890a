"""How a keeper is started: in a scope of its own where there is systemd, so that it outlives its starter's service."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure._runtime.keeper_client import keeper_start as starting
from tests.runtime.kit import Place, is_alive


def test_the_scope_is_the_systems_or_the_users() -> None:
    home = Path("/somewhere")
    assert starting.scope_command(home, is_systemd=False) == []
    system = starting.scope_command(home, is_systemd=True, uid=0)
    mine = starting.scope_command(home, is_systemd=True, uid=1000)
    assert system[:2] == ["systemd-run", "--scope"] and system[-1] == "--"
    assert mine[:3] == ["systemd-run", "--user", "--scope"]


def _systemd_run(tmp_path: Path, script: str) -> list[str]:
    """A stand-in; the real one is in test_systemd.py."""
    program = tmp_path / "systemd-run"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return [str(program), "--scope", "--"]


def test_the_anchor_is_started_inside_the_scope(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    command = _systemd_run(tmp_path, f'echo "$@" > {asked}; shift 2; exec "$@"')
    monkeypatch.setattr(starting, "scope_command", lambda home: command)
    assert is_alive(place.anchor)
    assert asked.read_text().startswith("--scope -- ") and "anchor.py" in asked.read_text()


def test_without_a_scope_to_be_had_it_is_started_all_the_same(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = _systemd_run(tmp_path, "echo no bus >&2; exit 1")
    monkeypatch.setattr(starting, "scope_command", lambda home: command)
    assert is_alive(place.anchor)
    assert os.getsid(place.anchor) != os.getsid(0)


def test_a_keeper_that_is_killed_while_it_starts_is_started_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, commands = subprocess.run, []

    def killed_at_first(command: list[str], **how: Any) -> Any:
        commands.append(command)
        return run(["sh", "-c", "kill -9 $$"], **how) if len(commands) == 1 else run(command, **how)

    monkeypatch.setattr(subprocess, "run", killed_at_first)
    assert is_alive(place.anchor)
    assert len(commands) == 2


WINDOWS = """
import asyncio, sys, tempfile
from perdure import Perdure
async def main():
    sys.platform = "win32"  # only now: asyncio itself asks for it, too
    async with Perdure(f"sqlite:///{tempfile.mkdtemp()}/perdure.db") as app:
        task = await app.tasks.open("work", state={})
        await task.checkpoint({"n": 1})
        try:
            await app.runtime("work")
        except Exception as error:
            print(type(error).__name__, error)
        print((await task.record()).state)
asyncio.run(main())
"""


def test_on_windows_the_runtime_refuses_clearly_and_all_else_works() -> None:
    done = subprocess.run([sys.executable, "-c", WINDOWS], capture_output=True, text=True, check=True)
    first, *_, last = done.stdout.splitlines()
    assert "Windows" in first and last == "{'n': 1}"
