"""`make bench-peers` measures us and a peer, and its page tells what was measured and what was not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.peers import page, plots
from benchmarks.peers.contestants import FIGURES
from benchmarks.peers.measuring import Failed, _note
from benchmarks.peers.results import Results

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 200


def some_results(**values: dict[str, list[float]]) -> Results:
    machine = {"processor": "a processor", "cores": 2, "system": "Linux", "disk": "ext4", "python": "3.11"}
    return Results(date="2026-01-01", machine=machine, quick=True, rounds=3, loads=[0.5], values=values)


def test_the_harness_measures_ours_and_the_peer_that_is_installed_here(tmp_path: Path) -> None:
    found = tmp_path / "results.json"
    lines = [word for name in ("waited", "size", "recovery") for word in ("--only", name)]
    who = [word for name in ("perdure-sqlite", "langgraph-sqlite") for word in ("--contestant", name)]
    command = [sys.executable, "-m", "benchmarks.peers", "--here", "--quick", "--rounds", "1", *lines, *who]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path), "--out", str(found)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = Results.read(found)
    assert results.failed == {}
    assert set(results.values) == {"waited", "size", "restart", "resume"}
    assert all(set(each) == {"perdure-sqlite", "langgraph-sqlite"} for each in results.values.values())
    for key in ("perdure-sqlite", "langgraph-sqlite"):
        assert results.values["waited"][key][0] > 0
        # The code is loaded after the process has begun, and the step begins after that.
        assert results.values["restart"][key][0] > results.values["resume"][key][0] > 0
        assert results.durability[key] == "SQLite, journal_mode=wal, synchronous=FULL"
    assert [file for file in tmp_path.iterdir() if file != found] == []


def test_who_does_not_sync_is_not_measured() -> None:
    results = some_results()
    with pytest.raises(Failed, match="does not sync"):
        _note(results, "dbos-sqlite", "SQLite, journal_mode=wal, synchronous=NORMAL", {})


def test_a_ratio_is_taken_within_each_round_and_says_how_many_times_better_ours_is() -> None:
    results = some_results(
        chain={"perdure-sqlite": [10, 20, 10], "dbos-sqlite": [50, 60, 5]},  # milliseconds: less is better
        crowd={"perdure-sqlite": [100], "dbos-sqlite": [400]},  # steps a second: more is better
    )
    assert results.ratios("chain", "dbos-sqlite") == [5, 3, 0.5]
    assert results.ratios("crowd", "dbos-sqlite") == [0.25]


def test_the_page_says_where_a_peer_is_better_and_what_was_left_out() -> None:
    results = some_results(crowd={"perdure-sqlite": [100], "dbos-sqlite": [400]})
    results.left_out["Temporal"] = "its server cannot be had here"
    results.failed["chain"] = {"restate": "no answer"}
    told = page.page_of(results)
    assert "**0.25 ×**" in told
    assert "- **DBOS** (SQLite), 100 tasks of 20 steps at once, in one process: 400 steps/s, perdure 100." in told
    assert "- **Temporal**: its server cannot be had here" in told
    assert "- **Restate** (its own server) failed in `chain`: no answer" in told


def test_every_row_of_a_picture_has_its_label() -> None:
    assert set(plots._LABELS) == set(FIGURES)


@pytest.mark.parametrize(
    "pinned", sorted((ROOT / "benchmarks/peers/requirements").glob("*.txt")), ids=lambda path: path.stem
)
def test_what_a_peer_is_installed_from_is_pinned_by_hash(pinned: Path) -> None:
    text = pinned.read_text(encoding="utf-8")
    if pinned.stem == "restate-server":
        named = [line for line in text.splitlines() if not line.startswith("#")]
        assert all(re.fullmatch(r"\S+ @restatedev/\S+@[\d.]+ sha512-\S{86}==", line) for line in named)
    else:
        packages = re.findall(r"^[a-z].*?(?=^[a-z]|\Z)", text, re.DOTALL | re.MULTILINE)
        assert packages and all("==" in package and "--hash=sha256:" in package for package in packages)
