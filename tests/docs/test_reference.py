"""The reference that is made from the code is that of this code."""

from __future__ import annotations

import sys

import pytest

from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import make_reference


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="each version of Python writes some signatures its own way")
def test_the_reference_is_what_the_code_says() -> None:
    for name, text in make_reference.pages().items():
        there = (make_reference.FOLDER / name).read_text(encoding="utf-8")
        assert there == text, f"{name} is old: run `python tools/make_reference.py`"


def test_every_environment_variable_that_is_read_is_in_the_reference() -> None:
    assert make_reference.unknown_variables() == set()
