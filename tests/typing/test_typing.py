"""Strict type checkers agree with what users mean, and notice what they got wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SNIPPETS = Path(__file__).parent / "snippets"


def mypy(file: Path, cache: Path) -> set[int]:
    """The lines mypy complains about."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(cache), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return {int(line) for line in re.findall(rf"{file.name}:(\d+): error", done.stdout)}


def pyright(file: Path, cache: Path) -> set[int]:
    """The lines pyright complains about, in strict mode."""
    settings = cache / "pyrightconfig.json"
    settings.write_text(json.dumps({"include": [str(file)], "typeCheckingMode": "strict"}))
    command = [
        sys.executable,
        "-m",
        "basedpyright",
        "--outputjson",
        "-p",
        str(settings),
        "--pythonpath",
        sys.executable,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {item["range"]["start"]["line"] + 1 for item in found if item["severity"] == "error"}


Checker = Callable[[Path, Path], set[int]]


@pytest.mark.req("R147")
@pytest.mark.parametrize("check", [mypy, pyright])
def test_what_users_write_passes_a_strict_check(check: Checker, tmp_path: Path):
    assert check(SNIPPETS / "good.py", tmp_path) == set()


@pytest.mark.req("R147")
@pytest.mark.parametrize("check", [mypy, pyright])
def test_what_users_get_wrong_is_noticed_line_by_line(check: Checker, tmp_path: Path):
    file = SNIPPETS / "bad.py"
    lines = enumerate(file.read_text().splitlines(), 1)
    assert check(file, tmp_path) == {number for number, line in lines if line.endswith("  # wrong")}
