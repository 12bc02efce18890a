"""Every line of docs/requirements.toml is named by a test."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.requirements import requirement_titles

TESTS = Path(__file__).resolve().parents[1]


def test_no_requirement_is_without_a_test() -> None:
    marks = (
        mark for path in TESTS.rglob("test_*.py") for mark in re.findall(r"\breq\(([^)]*)\)", path.read_text("utf-8"))
    )
    named = {name for mark in marks for name in re.findall(r"R\d+", mark)}
    assert set(requirement_titles()) - named == set()
