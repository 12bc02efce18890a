"""Terminal output as text and as a screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure._runtime.units.terminal_screen import place_of, plain, render


@pytest.mark.parametrize(
    "data, text",
    [
        (b"a\r\nb", "a\nb"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]133;A\x07$ \x1b[?2004h", "$ "),
        (b"\x1b]0;title\x1b\\x", "x"),
        (b"bell\x07 \x00", "bell "),
    ],
)
def test_plain_text_has_no_codes(data: bytes, text: str) -> None:
    assert plain(data) == text


@pytest.mark.parametrize(
    "data, screen",
    [
        (b"one\rtwo\r\nthree", "two\nthree"),
        (b"\x1b[2;3Hx\x1b[Hy", "y\n  x"),
        (b"abc\x1b[2D\x1b[K", "a"),
        (b"1\r\n2\r\n3\r\n4", "2\n3\n4"),
        (b"shell\x1b[?1049hvim\x1b[?1049l", "shell"),
        (b"keep\x1b[2J", ""),
        (b"abcdefgh", "abcde\nfgh"),
    ],
)
def test_a_screen_is_painted(data: bytes, screen: str) -> None:
    assert render(data, 3, 5) == screen


@given(st.binary(max_size=300))
def test_no_bytes_are_too_strange(data: bytes) -> None:
    render(data, 5, 10)
    text = plain(data)
    assert plain(data[: place_of(data, len(text))]).startswith(text[:0])


def test_a_place_in_text_is_a_place_in_bytes() -> None:
    data = b"\x1b[31mred\x1b[0m and more"
    assert data[place_of(data, 3) :] in (b"\x1b[0m and more", b" and more")
