"""What the guide shows runs as it stands, and each claim of `when.md` names a test that exists."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES, WHEN = [ROOT / "docs" / "guide" / name for name in ("memory.md", "adapters.md")], ROOT / "docs/guide/when.md"
BLOCKS = [block for guide in GUIDES for block in re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)]
CLAIMS = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", WHEN.read_text())


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_every_block_of_the_guides_runs_as_it_stands(block: str, tmp_path: Path) -> None:
    (tmp_path / "pasted.py").write_text(block)
    for _ in range(2):  # and once more, as after a restart
        command = [sys.executable, "pasted.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
    if "write_plan" in block:
        assert "0 of 3 done" in done.stdout and '"phase":"reading"' in done.stdout


@pytest.mark.req("R154")
def test_each_claim_names_a_test_that_exists() -> None:
    assert len(CLAIMS) > 20
    for file, name in CLAIMS:
        path = ROOT / file
        assert path.exists(), file
        names = {node.name for node in ast.walk(ast.parse(path.read_text())) if hasattr(node, "name")}
        assert not name or name in names, f"{file}::{name}"


@pytest.mark.req("R154")
def test_the_guide_says_when_not_to_use_it_and_what_is_never_promised() -> None:
    headings = re.findall(r"^## (.*)$", WHEN.read_text(), re.MULTILINE)
    assert headings == [
        "Use it when",
        "Do without it when",
        "What may go wrong, and what then holds",
        "Never promised",
        "Limits",
    ]
