"""The example of a team carries on after it was killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.programs import run

ROOT = Path(__file__).resolve().parents[2]


def test_the_team_example_carries_on_after_it_was_killed(tmp_path: Path):
    script = [sys.executable, str(ROOT / "examples/team.py"), "0.05"]
    with subprocess.Popen(script, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "wrote outline\n"
        first.kill()
    said = run(script, tmp_path).splitlines()
    wrote = [line for line in said if line.startswith("wrote")]
    assert sorted(wrote[:-1]) in (["wrote numbers", "wrote texts"], ["wrote numbers", "wrote outline", "wrote texts"])
    assert wrote[-1] == "wrote report" and "finished: report" in said
