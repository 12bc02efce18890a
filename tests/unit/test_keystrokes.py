"""Whether what was typed ends between two keys, also when it comes in pieces."""

from __future__ import annotations

import pytest

from perdure.keeper.kinds import keystrokes


@pytest.mark.parametrize(
    "typed, is_between",
    [
        (b"", True),
        (b"echo half", True),
        ("é".encode(), True),
        (b"\x16", False),
        (b"\x16\x16", True),
        (b"\x16\n", True),
        (b"\x1b", False),
        (b"\x1b[", False),
        (b"\x1b[1;5", False),
        (b"\x1b[A", True),
        (b"\x1bOA", True),
        (b"\x1bf", True),
        (b"\x18", False),
        (b"\x18\x18", True),
        (b"\x12make", False),
        (b"\x12make\n", True),
        (b"\x12make\x07", True),
        (b"\x12make\x1b", False),
        (b"\x1b[200~rm -rf /\n", False),
        (b"\x1b[200~rm\x1b[201", False),
        (b"\x1b[200~rm\x1b[201~", True),
        (b"\x1b[200~rm\x1b\x1b[201~", True),
        (b"\x18\x03", True),
    ],
)
def test_a_key_is_whole_or_not(typed: bytes, is_between: bool) -> None:
    whole = keystrokes.after(keystrokes.BETWEEN, typed)
    piecewise = keystrokes.BETWEEN
    for byte in typed:
        piecewise = keystrokes.after(piecewise, bytes([byte]))
    assert (whole == keystrokes.BETWEEN, piecewise) == (is_between, whole)


def test_what_is_not_known_is_over_at_the_next_enter() -> None:
    assert keystrokes.after(keystrokes.UNKNOWN, b"abc") == keystrokes.UNKNOWN
    assert keystrokes.after(keystrokes.UNKNOWN, b"abc\r") == keystrokes.BETWEEN
