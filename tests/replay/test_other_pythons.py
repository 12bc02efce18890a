"""A journal that was written under one Python is replayed under this one."""

from __future__ import annotations

import pytest

from tests.replay import traveller
from tests.replay.kit import play, play_again

RECORDED = sorted(traveller.FIXTURES.glob("journal-python*.msgpack"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_it_gives_what_it_gave_there_and_nothing_runs(path: traveller.Path) -> None:
    journal, result = traveller.load(path)
    traveller.ran.clear()
    again = await play_again(traveller.travel, journal=journal)
    assert [repr(told) for told in again.result()] == result
    assert traveller.ran == []


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_it_goes_on_from_the_middle(path: traveller.Path) -> None:
    journal, result = traveller.load(path)
    traveller.ran.clear()
    for count in range(0, len(journal), 7):
        resumed = await play(traveller.travel, journal=journal[:count])
        assert repr(resumed.result()[0]) == result[0]


def test_there_is_one_of_an_older_and_one_of_a_newer_python() -> None:
    assert {path.stem for path in RECORDED} >= {"journal-python311", "journal-python313"}
