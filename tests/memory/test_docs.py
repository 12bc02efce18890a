"""Each claim of `when.md` names a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEN = ROOT / "docs/explanation/when.md"
CLAIMS = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", WHEN.read_text())


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
