"""Reads are small, unless that is not enough."""

from __future__ import annotations

import socket

from perdure.keeper.pgproxy.read_size import Gulp

MOST = 1 << 18


def test_a_read_grows_while_more_comes_and_shrinks_when_little_does() -> None:
    gulp = Gulp(MOST)
    little = gulp.size
    while gulp.size < MOST:
        before = gulp.size
        assert gulp.took(before) and gulp.size > before
    assert gulp.took(MOST) and gulp.size == MOST
    while gulp.size > little:
        assert not gulp.took(1)
    assert not gulp.took(1) and gulp.size == little


def test_all_that_is_there_is_read_until_a_read_is_not_full() -> None:
    here, there = socket.socketpair()
    with here, there:
        said = bytes(150_000)
        here.sendall(said)
        gulp, heard = Gulp(MOST), b""
        while gulp.took(len(piece := there.recv(gulp.size))):
            heard += piece
        assert heard + piece == said
