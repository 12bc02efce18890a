"""`make torture` works, and a few of its seeds pass."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.processes import Link, nursery, say
from tests.torture import __main__ as torture
from tests.torture import races


@pytest.mark.req("R11", "R23")
@pytest.mark.parametrize("part", ["powerloss", "kills", "sequences"])
def test_a_few_seeds_pass(part: str) -> None:
    assert torture.main(["--part", part, "--seeds", "100010-100019"]) == 0


@pytest.mark.req("R14")
def test_a_race_against_the_clock_is_run_and_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(races, "SECONDS", 1.0)
    assert torture.main(["--part", "races", "--seeds", "0-1"]) == 0


def test_a_seed_that_fails_is_named_with_the_command_to_repeat_it(capsys: pytest.CaptureFixture[str]) -> None:
    def run(seed: int) -> None:
        assert seed != 3, "lost"

    assert torture.main(["--seeds", "0-4"], {"losses": torture.Part(run, range(9))}) == 1
    assert "FAILED: losses 3: python -m tests.torture --part losses --seeds 3-3" in capsys.readouterr().out


def test_an_interrupted_run_goes_on_where_it_was_and_repeats_what_failed(tmp_path: Path) -> None:
    ran: list[int] = []

    def run(seed: int) -> None:
        ran.append(seed)
        assert seed != 3 or ran.count(3) > 1

    parts = {"part": torture.Part(run, range(5))}
    finished = str(tmp_path / "finished")
    assert torture.main(["--resume", finished], parts) == 1
    assert torture.main(["--resume", finished], parts) == 0
    assert torture.main(["--resume", finished], parts) == 0
    assert ran == [0, 1, 2, 3, 4, 3]


def test_shards_share_the_seeds() -> None:
    ran: list[int] = []
    parts = {"part": torture.Part(ran.append, range(7))}
    for shard in ("1/3", "2/3", "3/3"):
        assert torture.main(["--shard", shard], parts) == 0
    assert ran == [0, 3, 6, 1, 4, 2, 5]


async def _wait_for_ever(link: Link) -> None:
    say(link)
    await asyncio.Event().wait()


def _hang(seed: int) -> None:
    with nursery() as children:
        child = children.start(_wait_for_ever)
        child.heard()
        child.heard()


def test_a_seed_that_hangs_tells_where_and_fails(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torture, "HANGS_AFTER", 0.5)
    monkeypatch.setattr(torture, "TELLING", 2.0)
    assert torture.main([], {"stuck": torture.Part(_hang, range(1))}) == 1
    told = capfd.readouterr()
    assert "HANGS: stuck 0" in told.out and "_hang" in told.err
