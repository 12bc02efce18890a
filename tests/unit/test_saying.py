"""Texts of exceptions, as they are shown where there is little room."""

from __future__ import annotations

from perdure._ground.exception_text import in_one_line
from perdure.errors import InvalidInput


def test_an_error_in_one_line_has_no_spaces_that_only_align_its_lines() -> None:
    error = InvalidInput("it was never awaited", kept="what was recorded", do="write await")
    assert in_one_line(str(error)) == "it was never awaited; kept: what was recorded; do: write await"
