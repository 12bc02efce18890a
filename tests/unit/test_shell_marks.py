"""Marks in a shell's output: found however it is cut, forged ones passed over."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from perdure.keeper.marks import Mark, Marks
from perdure.keeper.outlog import OutLog, memory_file
from perdure.keeper.shells import Shell

NONCE = "6e6f6e6365"


def mark(kind: str, *parts: str) -> bytes:
    return f"\x1b]133;{';'.join([kind, *parts])}\x07".encode()


GENUINE = [
    (mark("A", f"p={NONCE}"), ("A", 0, "", "")),
    (mark("C", f"p={NONCE}", "id=run-1"), ("C", 0, "run-1", "")),
    (mark("C", f"p={NONCE}"), ("C", 0, "", "")),
    (mark("D", "7", f"p={NONCE}", "s=1"), ("D", 7, "", "1")),
]
FORGED = [mark("D", "0"), mark("D", "0", "p=other"), mark("A"), mark("C", "p="), b"\x1b]133;D;0;p=" + NONCE.encode()]
NOISE = [b"text\r\n", b"\x1b[31m", b"\x1b", b"\x1b]0;title\x07", b"\xff\xfe", b"]133;A", b""]

pieces = st.lists(st.sampled_from([*GENUINE, *((piece, None) for piece in [*FORGED, *NOISE])]), max_size=30)


@given(pieces, st.lists(st.integers(1, 40), max_size=60))
def test_every_genuine_mark_is_found_once_at_its_place(pieces, cuts) -> None:
    # What is open at the end of a piece ends before a genuine mark begins, as a terminal sees it.
    pieces = [(piece + b"\n" if told is None else piece, told) for piece, told in pieces]
    stream, expected = b"", []
    for piece, told in pieces:
        if told is not None:
            expected.append((*told, len(stream), len(stream) + len(piece)))
        stream += piece
    found: list[Mark] = []
    marks, at = Marks(NONCE), 0
    for size in [*cuts, len(stream)]:
        found += marks.feed(at, stream[at : at + size])
        at = min(len(stream), at + size)
    assert [(one.kind, one.code, one.id, one.state, one.start, one.end) for one in found] == expected


def test_a_gap_begins_anew() -> None:
    marks = Marks(NONCE)
    assert list(marks.feed(0, b"\x1b]133;A;p=")) == []
    [found] = marks.feed(1000, mark("A", f"p={NONCE}"))
    assert found.start == 1000


class Seen(Shell):
    """A shell without a keeper, that only looks at its output."""

    def __init__(self, log: OutLog) -> None:
        self.log, self._marks, self._is_shell = log, Marks(NONCE), True
        self.seen: list[Any] = []

    def _marked(self, mark: Mark) -> None:
        self.seen.append((mark.kind, mark.code))


def test_a_mark_behind_more_output_than_is_read_at_once_is_found() -> None:
    """A command that floods its terminal: its end comes with the last of it."""
    log = OutLog(memory_file(), os.pipe())
    shell = Seen(log)
    log.write(bytes(300_000) + mark("D", "7", f"p={NONCE}", "s=1") + mark("A", f"p={NONCE}"))
    shell.saw()
    assert shell.seen == [("D", 7), ("A", 0)]
