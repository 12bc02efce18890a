"""A file that grows rings a bell, for as long as somebody listens."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from perdure.keeper.core.file_bells import Bells

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bells are inotify's, on Linux")


async def test_whoever_watches_a_file_is_told_of_each_piece_and_of_no_other_file(tmp_path: Path) -> None:
    bells, rung, heard = Bells(asyncio.get_running_loop()), asyncio.Event(), []
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.touch(), other.touch()

    def ring() -> None:
        heard.append(mine.read_bytes())
        rung.set()

    watched = bells.watch(str(mine), ring)
    assert watched is not None and bells.watch(str(other), lambda: heard.append(b"other")) is not None
    for content in (b"a", b"ab"):
        mine.write_bytes(content)
        await asyncio.wait_for(rung.wait(), 120)
        rung.clear()
    assert heard[-1] == b"ab" and b"other" not in heard


async def test_who_has_left_is_told_nothing_more(tmp_path: Path) -> None:
    bells, rung, heard = Bells(asyncio.get_running_loop()), asyncio.Event(), []
    mine, next_one = tmp_path / "mine", tmp_path / "next"
    mine.touch(), next_one.touch()
    watched = bells.watch(str(mine), lambda: heard.append("mine"))
    assert watched is not None
    mine.write_bytes(b"on its way")
    bells.leave(watched)
    bells.watch(str(next_one), rung.set)
    next_one.write_bytes(b"x")
    await asyncio.wait_for(rung.wait(), 120)
    assert heard == []


def test_a_file_that_is_not_there_is_not_watched(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    try:
        assert Bells(loop).watch(str(tmp_path / "missing"), print) is None
    finally:
        loop.close()
