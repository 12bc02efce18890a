"""The example of the guide does what it says, and the guide names each tool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from perdure.mcp import TOOLS

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_has_the_result_of_a_command_whose_agent_died() -> None:
    script = [sys.executable, str(ROOT / "examples/coding_agent.py")]
    done = subprocess.run(script, capture_output=True, text=True, check=True, timeout=120)
    lines = done.stdout.splitlines()
    assert lines[0] == "the first agent dies"
    assert lines[1].startswith("the second agent knows: {'goal': 'count'")
    assert lines[2:] == [*(f"line {n}" for n in range(1, 6)), "kept in /usr"]


def test_the_guide_names_every_tool() -> None:
    guide = (ROOT / "docs/guide/coding-agents.md").read_text()
    assert [tool.name for tool in TOOLS if f"`{tool.name}`" not in guide] == []
