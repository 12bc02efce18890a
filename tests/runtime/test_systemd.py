"""Under a real systemd the keeper outlives the service that started it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime import systemd
from tests.runtime.kit import until

ROOT = Path(__file__).resolve().parents[2]
ALONE = "--property=DefaultDependencies=no"  # nothing of the machine's own is started
AGENT = """
import asyncio, json, os, signal, sys
from perdure import Perdure
from perdure._runtime import keeper_control as keeping

async def main(url, told):
    async with Perdure(url) as app:
        await app.tasks.open("work", state={})
        rt = await app.runtime("work")
        shell = await rt.shell("main", env={"HOME": "/", "PS1": "$ "})
        result = await shell.run("N=$((N+1)); echo $N")
        found = await keeping.status(app._store)
        facts = {
            "level": shell.level,
            "made": shell.was_made,
            "count": result.output.strip(),
            "groups": [open(f"/proc/{pid}/cgroup").read().strip() for pid in ("self", found.anchor, shell.record.pid)],
            "ends": keeping.what_would_end(found.anchor),
        }
        with open(told + ".new", "w") as file:
            json.dump(facts, file)
        os.rename(told + ".new", told)
        signal.pause()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def real(tmp_path: Path) -> Iterator[systemd.Systemd]:
    with systemd.running(tmp_path) as found:
        yield found


def begin_and_stop(real: systemd.Systemd, folder: Path, turn: str) -> dict[str, Any]:
    """Run the agent as a service until it has told what it sees, and stop the service."""
    told = folder / turn
    path = os.pathsep.join([str(ROOT / "src"), *sys.path[1:]])
    agent = [sys.executable, "-c", AGENT, f"sqlite://{folder}/perdure.db", str(told)]
    unit = [f"--unit=agent-{turn}", "--quiet", ALONE, f"--setenv=PYTHONPATH={path}", f"--setenv=HOME={folder}"]
    real.run("systemd-run", *unit, "--", *agent)
    until(told.exists, f"the agent's {turn} word")
    real.run("systemctl", "stop", f"agent-{turn}")
    return dict(json.loads(told.read_text()))


@pytest.mark.req("R83")
def test_a_keeper_outlives_the_service_that_started_it(real: systemd.Systemd, tmp_path: Path) -> None:
    first = begin_and_stop(real, tmp_path, "first")
    agent, anchor, shell = first["groups"]
    assert agent.endswith("/agent-first.service")
    assert anchor.endswith(".scope") and anchor == shell
    assert first["ends"] == "a restart of the machine"
    second = begin_and_stop(real, tmp_path, "second")
    assert (first["made"], first["count"]) == (True, "1")
    assert (second["made"], second["level"], second["count"]) == (False, "kept", "2")
    assert second["groups"][1:] == [anchor, shell]
