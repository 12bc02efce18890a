"""What the guides show works as it stands, and the example carries on after it was killed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("coordination", "schedules")


@pytest.mark.parametrize("page", PAGES)
def test_the_whole_programs_of_a_guide_run(page: str, tmp_path: Path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / f"docs/guide/{page}.md").read_text(), re.DOTALL)
    whole = [block for block in blocks if "asyncio.run(" in block]
    assert whole
    (tmp_path / "pasted.py").write_text(whole[0])
    said = run([sys.executable, "pasted.py"], tmp_path)
    assert ("REPORT" in said) if page == "coordination" else ("digest 20" in said and "tidy 20" in said)


@pytest.mark.parametrize("page", PAGES)
def test_every_other_block_of_a_guide_is_python(page: str):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / f"docs/guide/{page}.md").read_text(), re.DOTALL)
    for block in blocks:
        body = "\n".join(f"    {line}" for line in block.splitlines())
        compile(f"async def shown():\n{body}\n    pass\n", page, "exec")


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
