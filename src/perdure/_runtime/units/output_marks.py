"""Hide the numbers that a keeper puts into a shell's output. Pure.

A kept shell marks where its commands begin and end (OSC 133, see keeper/kinds/shell/marks.py). The numbers in these
marks are between the keeper and its shell. They are overwritten with zeros of the same length, so every offset stays
true.
"""

from __future__ import annotations

import re

LONGEST = 300  # bytes of a mark
_MARK = re.compile(rb"\x1b\]133;[^\x07\x1b]{0,%d}" % LONGEST)  # also one whose end has not come yet
_NUMBER = re.compile(rb"(?<=[;])((?:p|id)=)([^;\x07\x1b]+)")


def hide_mark_numbers(before: bytes, data: bytes) -> bytes:
    """The data without these numbers; `before` is what stands right before it, at least 300 bytes if there are any."""
    before = before[-LONGEST:]
    whole = _MARK.sub(_hidden, before + data)
    return whole[len(before) :]


def _hidden(mark: re.Match[bytes]) -> bytes:
    return _NUMBER.sub(lambda found: found[1] + b"0" * len(found[2]), mark[0])
