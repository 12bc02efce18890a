"""The example and the commands of the guides do what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, *argv: str, code: int = 0, **env: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    done = subprocess.run(
        argv, cwd=folder, env={**kept, **env}, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.req("R22", "R75")
def test_the_example_is_cut_off_and_goes_on_at_the_next_line(tmp_path: Path) -> None:
    script = (sys.executable, str(ROOT / "examples/comes_back.py"))
    assert run(tmp_path, *script, code=1).split("\n")[:5] == ["line 1", "line 2", "line 3", "line 4", "crashed"]
    plan = run(tmp_path, *script, "--plan")
    assert "book: rebuilt, opened anew at byte 28" in plan
    told = run(tmp_path, *script).split("\n")
    assert told[0] == "back: reading, curious, lost: []"
    assert told[1:7] == [f"line {number}" for number in range(5, 11)]


@pytest.mark.req("R107", "R148")
def test_the_commands_of_the_guide_take_a_task_to_another_store(tmp_path: Path) -> None:
    perdure = (sys.executable, "-m", "perdure")
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    run(here, *perdure, "create", "deploy", "--state", '{"n": 1}')
    told = run(here, *perdure, "export", "deploy", "../deploy.perdure", "--move")
    assert "deploy.perdure" in told and "not forgery" in told
    assert "imported task" in run(there, *perdure, "import", "../deploy.perdure", "--map", f"{here}={there}")
    plan = json.loads(run(there, *perdure, "resume", "--plan", "deploy", "--json"))
    assert plan["units"] == [] and plan["skipped"] == 0
    assert "its runtime was never saved" in run(there, *perdure, "resume", "--plan", "deploy")
    record = json.loads(run(there, *perdure, "show", "deploy", "--json"))
    assert (record["status"], record["state"]) == ("paused", {"n": 1}), "it is not signed"
    run(there, *perdure, "resume", "deploy")
    record = json.loads(run(there, *perdure, "show", "deploy", "--json"))
    assert record["status"] == "running"
    assert "already exists" in run(there, *perdure, "import", "../deploy.perdure", code=4)
    (tmp_path / "deploy.perdure").write_bytes(b"x")
    assert "refused bundle" in run(there, *perdure, "import", "../deploy.perdure", code=2)


@pytest.mark.parametrize("page", ["restore", "bundles", "secrets"])
def test_every_name_a_guide_shows_is_there(page: str) -> None:
    import perdure
    from perdure import runtime

    text = (ROOT / f"docs/guide/{page}.md").read_text()
    shown = set(re.findall(r"\b(Secret|Fingerprint|RedactingFilter|Rules|UnitType|register_unit_type|redact)\b", text))
    assert shown <= {*dir(perdure), *dir(runtime)}


@pytest.mark.req("R91")
def test_a_resume_on_the_command_line_is_refused_while_the_world_has_changed(tmp_path: Path) -> None:
    perdure = (sys.executable, "-m", "perdure")
    script = (sys.executable, str(ROOT / "examples/comes_back.py"))
    run(tmp_path, *script, code=1)
    run(tmp_path, *perdure, "pause", "read-the-lines", "for now", "--reason", "checkpoint")
    (tmp_path / "book.txt").write_text("another book")
    assert "the environment has changed since checkpoint" in run(tmp_path, *perdure, "resume", "read-the-lines", code=4)
    assert "paused" in run(tmp_path, *perdure, "show", "read-the-lines")
    assert "refused by" in run(tmp_path, *perdure, "resume", "--plan", "read-the-lines")
    assert "running" in run(tmp_path, *perdure, "resume", "read-the-lines", "--anyway")
