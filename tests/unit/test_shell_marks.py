"""Marks in a shell's output: found however it is cut; those the shell has not said on its line are passed over."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.keeper.kinds.output_log import OutLog
from perdure.keeper.kinds.shell.marks import Mark, Marks
from perdure.keeper.kinds.shell.shell_line import ShellLine
from perdure.keeper.kinds.shells import Shell
from perdure.keeper.process.memory_files import memory_file


def mark(kind: str, *parts: str) -> bytes:
    return f"\x1b]133;{';'.join([kind, *parts])}\x07".encode()


FOUND = [
    (mark("A", "k=1", "p=71"), ("A", 0, "", "")),
    (mark("C", "id=run-1", "p=72"), ("C", 0, "run-1", "")),
    (mark("C", "p=73"), ("C", 0, "", "")),
    (mark("D", "7", "s=1", "p=74"), ("D", 7, "", "1")),
    (mark("D", "9" * 40, "p=75"), ("D", 0, "", "")),
    (mark("K", "busy", "p=76"), ("K", 0, "", "")),
]
NOISE = [b"\x1b]133;D;0;p=77", b"text\r\n", b"\x1b[31m", b"\x1b", b"\x1b]0;title\x07", b"\xff\xfe", b"]133;A", b""]

pieces = st.lists(st.sampled_from([*FOUND, *((piece, None) for piece in NOISE)]), max_size=30)


@given(pieces, st.lists(st.integers(1, 40), max_size=60))
def test_every_mark_is_found_once_at_its_place(pieces, cuts) -> None:
    # What is open at the end of a piece ends before a mark begins, as a terminal sees it.
    pieces = [(piece + b"\n" if told is None else piece, told) for piece, told in pieces]
    stream, expected = b"", []
    for piece, told in pieces:
        if told is not None:
            expected.append((*told, len(stream), len(stream) + len(piece)))
        stream += piece
    found: list[Mark] = []
    marks, at = Marks(), 0
    for size in [*cuts, len(stream)]:
        found += marks.feed(at, stream[at : at + size])
        at = min(len(stream), at + size)
    assert [(one.kind, one.code, one.id, one.state, one.start, one.end) for one in found] == expected


def test_a_gap_begins_anew() -> None:
    marks = Marks()
    assert list(marks.feed(0, b"\x1b]133;A;p=")) == []
    [found] = marks.feed(1000, mark("A", "p=71"))
    assert found.start == 1000


class Seen(Shell):
    """A shell without a keeper, that only looks at its output."""

    def __init__(self, log: OutLog, line: ShellLine) -> None:
        self.log, self._marks, self._is_shell, self._line = log, Marks(), True, line
        self.seen: list[Any] = []

    def _marked(self, mark: Mark) -> None:
        self.seen.append((mark.kind, mark.code))


@pytest.fixture
def shell() -> Iterator[tuple[Seen, socket.socket]]:
    ours, theirs = socket.socketpair()
    line = ShellLine(ours.detach())
    with theirs:
        yield Seen(OutLog(memory_file(), os.pipe()), line), theirs
    line.close()


def test_a_mark_behind_more_output_than_is_read_at_once_is_found(shell: tuple[Seen, socket.socket]) -> None:
    """A command that floods its terminal: its end comes with the last of it."""
    seen, theirs = shell
    theirs.sendall(b"D;7;s=1;p=71\nA;k=1;p=72\n")
    seen.log.write(bytes(300_000) + mark("D", "7", "s=1", "p=71") + mark("A", "k=1", "p=72"))
    seen.saw()
    assert seen.seen == [("D", 7), ("A", 0)]


def test_a_mark_counts_once_and_as_it_was_said(shell: tuple[Seen, socket.socket]) -> None:
    seen, theirs = shell
    theirs.sendall(b"D;7;s=1;p=71\nA;k=1;p=7")
    seen.log.write(
        mark("D", "0", "s=1", "p=71") + mark("D", "0") + mark("D", "7", "p=71", "s=1") + mark("A", "k=1", "p=7")
    )
    seen.saw()
    assert seen.seen == []
    seen.log.write(2 * mark("D", "7", "s=1", "p=71"))
    seen.saw()
    assert seen.seen == [("D", 7)]
    assert seen._line is not None
    seen._line.settle("D;7;s=1;p=71")
    seen.log.write(mark("D", "7", "s=1", "p=71"))
    theirs.sendall(b"2\n")
    seen.log.write(mark("A", "k=1", "p=72"))
    seen.saw()
    assert seen.seen == [("D", 7), ("A", 0)]


def test_what_was_said_is_heard_again_by_the_next_keeper_until_it_is_settled() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"C;p=1\nD;0;s=1;p=2\nA;p=3\n")
        for _ in range(2):
            line = ShellLine(os.dup(ours.fileno()))
            assert [line.was_said(words) for words in ("C;p=1", "D;0;s=1;p=2", "C;p=1")] == [True, True, False]
            line.close()
        line = ShellLine(os.dup(ours.fileno()))
        line.settle("D;0;s=1;p=2")
        assert [line.was_said(words) for words in ("C;p=1", "D;0;s=1;p=2", "A;p=3")] == [False, False, True]
        line.close()


def test_a_line_full_of_noise_still_hears_the_shell() -> None:
    ours, theirs = socket.socketpair()
    line = ShellLine(ours.detach())
    with theirs:
        theirs.sendall(b"x" * 70_000)
        assert not line.was_said("A;p=1")
        theirs.sendall(b"\nA;p=1\n")
        assert line.was_said("A;p=1")
        assert not line.is_over
    assert line.is_over
    line.close()
