"""Each example agent can be killed at a random moment, several times, and comes to the same end.

The moment is a line that it prints: the test reads that many lines and sends SIGKILL. A failure names its seed.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs import run

AGENTS = Path(__file__).resolve().parents[2] / "examples" / "agents"
CLI = [sys.executable, "-m", "perdure"]
KILLS = 2


def lines(folder: Path, name: str) -> list[str]:
    path = folder / name
    return sorted(path.read_text().splitlines()) if path.exists() else []


def paid_back_once(folder: Path) -> None:
    assert lines(folder, "provider.txt") == ["charge tea 500", "refund tea"]


def applied_once(folder: Path) -> None:
    with sqlite3.connect(folder / "shop.db") as con:
        assert [row[0] for row in con.execute("SELECT number FROM applied ORDER BY number")] == [*range(1, 11)]


def rewritten(folder: Path) -> None:
    texts = [path.read_text() for path in (folder / "src").rglob("*.py")]
    assert len(texts) == 42 and not any("old_name" in text for text in texts)


def sent_once(folder: Path) -> None:
    assert lines(folder, "outbox.txt") == ["We open at nine."]


def nothing(folder: Path) -> None:
    pass


@pytest.mark.req("R147")
@pytest.mark.parametrize(
    "name, most_lines, check",
    [
        ("payment", 4, paid_back_once),
        ("migration", 10, applied_once),
        ("refactoring", 42, rewritten),
        ("scraper", 12, nothing),
        ("digest", 3, nothing),
        ("tools", 3, sent_once),
    ],
)
def test_an_example_that_is_killed_anywhere_comes_to_its_end(
    name: str, most_lines: int, check: Callable[[Path], None], tmp_path: Path
) -> None:
    seed = int(os.environ.get("PERDURE_EXAMPLES_SEED", random.randrange(10**6)))
    dice = random.Random(seed)
    (tmp_path / ".perdure").mkdir()
    argv = [sys.executable, str(AGENTS / f"{name}.py")]
    for _ in range(KILLS):
        kill_after_lines(argv, tmp_path, dice.randint(1, most_lines))
    said = run(argv, tmp_path)
    if name == "tools" and "waits for" in said:
        run([*CLI, "approve", "mail-agent", "--by", "ada"], tmp_path)
        kill_after_lines(argv, tmp_path, 1)
        said = run(argv, tmp_path)
    assert "done: " in said, f"seed {seed}: {said}"
    check(tmp_path)


def kill_after_lines(argv: list[str], folder: Path, number: int) -> None:
    """Run it until it has printed so many lines, or has ended, and kill it."""
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        assert child.stdout is not None
        for _, _line in zip(range(number), child.stdout, strict=False):
            pass
        child.kill()


@pytest.mark.req("R147")
def test_a_plain_script_finds_its_place_again_when_it_is_killed(tmp_path: Path) -> None:
    argv = [sys.executable, str(AGENTS / "plain_script.py")]
    with subprocess.Popen(
        [*argv, "--slowly"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stdin is not None
        for _ in range(random.randint(0, 8)):
            child.stdout.readline()
            child.stdin.write("\n")
            child.stdin.flush()
        child.kill()
    (tmp_path / ".perdure").mkdir()
    said = run([*CLI, "run", "copy", "--", *argv], tmp_path)
    assert "done: 10 rows" in said
    assert (tmp_path / "copied.txt").read_text().splitlines() == [f"row {number}" for number in range(1, 11)]
