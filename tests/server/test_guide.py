"""What docs/guide/server.md shows works as it stands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server_processes import environment, live_server

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/guide/server.md").read_text(encoding="utf-8")
PATIENCE = 120


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture
def served(shared_url):
    """A server, and the key that the guide has made for it."""
    env = environment(shared_url)
    command = next(line for line in GUIDE.splitlines() if line.startswith("$ KEY=$("))
    arguments = re.search(r"perdure (api-keys make .*?) \|", command)[1].split()
    subprocess.run([sys.executable, "-m", "perdure", "open", "first"], env=env, check=True, capture_output=True)
    made = subprocess.run([sys.executable, "-m", "perdure", *arguments], env=env, check=True, capture_output=True)
    with live_server(shared_url, command="serve") as server:
        yield server, json.loads(made.stdout)["key"]


def test_the_lines_of_curl_take_a_task_through_its_life(served):
    server, key = served
    script = "set -e\n" + blocks("sh")[0].replace("127.0.0.1:7420", server.host)
    env = {**environment(""), "KEY": key, "no_proxy": "*"}
    ran = subprocess.run(
        ["bash", "-c", script], env=env, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    answers = [json.loads(line) for line in ran.stdout.splitlines() if line]
    assert [answer.get("status") for answer in answers] == [
        "running",
        None,
        "paused",
        "running",
        "completed",
        "completed",
    ]
    assert answers[-1]["result"] == {"sent": True}


def test_the_program_of_the_guide_runs(served, tmp_path):
    server, key = served
    (tmp_path / "pasted.py").write_text(blocks("python")[0], encoding="utf-8")
    env = {**environment(""), "KEY": key, "PERDURE_SERVER": f"http://{server.host}", "no_proxy": "*"}
    ran = subprocess.run(
        [sys.executable, "pasted.py"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("completed\n", 0), ran.stderr
