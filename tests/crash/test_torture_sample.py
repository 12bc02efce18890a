"""`make torture` works, and a few of its seeds pass."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.processes import Link, nursery, say
from tests.torture import __main__ as torture
from tests.torture import adapter_promises, failovers, promises, races
from tests.torture.report import CannotRun

KNOWN = {**promises.PROMISES, **adapter_promises.PROMISES}


@pytest.mark.req("R11", "R23")
@pytest.mark.parametrize("part", ["powerloss", "kills", "sequences"])
def test_a_few_seeds_pass(part: str) -> None:
    assert torture.main(["--part", part, "--seeds", "100010-100019"]) == 0


@pytest.mark.req("R14")
def test_a_race_against_the_clock_is_run_and_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(races, "SECONDS", 1.0)
    assert torture.main(["--part", "races", "--seeds", "0-1"]) == 0


@pytest.mark.req("R55")
def test_workers_ride_out_a_failover_and_nothing_is_lost_or_done_twice() -> None:
    failovers.run(100_000, failovers=1)


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


def test_a_part_that_cannot_run_here_is_named_as_left_out_and_counts_for_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(seed: int) -> None:
        raise CannotRun("there is no Patroni")

    page, finished = tmp_path / "report.md", tmp_path / "finished"
    asked = ["--report", str(page), "--resume", str(finished)]
    assert torture.main(asked, {"elections": torture.Part(run, range(5))}) == 0
    assert "LEFT OUT: elections: there is no Patroni" in capsys.readouterr().out
    assert "| left out: there is no Patroni |" in page.read_text() and "tried: 0 seeds" in page.read_text()
    assert not finished.exists() or not finished.read_text()


def test_minutes_are_shared_among_the_parts_and_a_report_says_what_was_tried(tmp_path: Path) -> None:
    ran: list[str] = []

    def run(seed: int) -> None:
        ran.append(f"a{seed}")
        assert seed != 1, "lost"

    parts = {
        "first part": torture.Part(run, range(3)),
        "second": torture.Part(lambda seed: ran.append(f"b{seed}"), range(9)),
        "mutants": torture.Part(lambda seed: ran.append(f"m{seed}"), range(2), ("the fence", "the intent")),
    }
    page = tmp_path / "report.md"
    assert torture.main(["--minutes", "0", "--report", str(page)], parts) == 0
    # Each part has one go, however short the time is, and no mutant is left out.
    assert ran == ["m0", "m1", "a0", "b0"]
    assert "| second |" in page.read_text() and "**violations: 0**" in page.read_text()
    assert "| 8 |" in page.read_text()  # seeds that were not reached

    assert torture.main(["--minutes", "9", "--report", str(page)], parts) == 1
    assert "**violations: 1**" in page.read_text()
    assert "$ python -m tests.torture --part 'first part' --seeds 1-1" in page.read_text()


def test_the_minutes_of_mutants_are_not_taken_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, ran = 0.0, []

    def run(seed: int) -> None:
        nonlocal seconds
        seconds += 60
        ran.append(seed)

    monkeypatch.setattr(torture.time, "monotonic", lambda: seconds)
    parts = {"mutants": torture.Part(run, range(5), ("the fence",)), "drawn": torture.Part(run, range(9))}
    assert torture.main(["--minutes", "3"], parts) == 0
    assert ran == [*range(5), *range(4)]


def test_the_report_names_the_mutants_that_were_caught_and_those_that_survived(tmp_path: Path) -> None:
    def run(seed: int) -> None:
        assert seed != 1, "no test fails"

    page = tmp_path / "report.md"
    parts = {"promises": torture.Part(run, range(3), ("the fence", "the intent", "the order"))}
    assert torture.main(["--minutes", "0", "--report", str(page)], parts) == 1
    assert "- caught, 2 of 3: the fence; the order\n- survived: the intent\n" in page.read_text()

    assert torture.main(["--seeds", "0-0", "--report", str(page)], parts) == 0
    assert "- not tried: the intent; the order" in page.read_text()


@pytest.mark.parametrize("name", KNOWN)
def test_every_line_that_carries_a_promise_is_still_where_the_mutants_look_for_it(name: str) -> None:
    assert promises.broken_text(KNOWN[name])


def test_a_broken_promise_is_noticed_by_its_test() -> None:
    told = promises.broken_run(promises.PROMISES["uncertain"])
    assert told.startswith("tests/replay/test_cursor.py::") and told.endswith(" fails")


def test_a_promise_that_no_test_guards_fails_the_run() -> None:
    """A mutant that changes nothing is a survivor."""
    harmless = promises.PROMISES["uncertain"]._replace(broken=promises.PROMISES["uncertain"].line)
    with pytest.raises(promises.Unnoticed, match=r"is broken in _replay/cursor\.py"):
        promises.broken_run(harmless._replace(tests=("tests/replay/test_cursor.py",)))


def test_a_test_that_fails_anyway_guards_no_promise(tmp_path: Path) -> None:
    file = tmp_path / "test_anyway.py"
    file.write_text("def test_anyway():\n    assert False, 'fails anyway'\n")
    with pytest.raises(promises.Unnoticed, match=r"test_anyway fails without a change as well:[\s\S]*fails anyway"):
        promises.broken_run(promises.PROMISES["uncertain"]._replace(tests=(str(file),)))


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
