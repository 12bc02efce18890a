"""The examples of the live runtime do what their first lines say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.runtime.kit import Place
from tests.support.ports import free_port

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_a_second_run_finds_the_server_of_the_first(place: Place) -> None:
    number = str(free_port())

    def run(*more: str) -> str:
        argv = [sys.executable, str(EXAMPLES / "kept_server.py"), "--port", number, *more]
        done = subprocess.run(
            argv, env={**os.environ, "PERDURE_URL": place.url}, text=True, capture_output=True, timeout=120, check=True
        )
        return done.stdout

    first, second = run(), run()
    found = [re.match(r"kept: process (\d+), asked (\d+) times", text) for text in (first, second)]
    assert found[0] and found[1]
    assert found[0][1] == found[1][1]
    assert (found[0][2], found[1][2]) == ("1", "2")
    assert run("--end") == "ended\n"


def test_a_second_run_finds_the_shell_of_the_first(place: Place) -> None:
    def run(*more: str) -> str:
        argv = [sys.executable, str(EXAMPLES / "kept_shell.py"), *more]
        env = {**os.environ, "PERDURE_URL": place.url}
        return subprocess.run(argv, env=env, text=True, capture_output=True, timeout=120, check=True).stdout

    first, second = run(), run()
    found = [re.match(r"kept: (\d) times, in process (\d+)", text) for text in (first, second)]
    assert found[0] and found[1]
    assert (found[0][1], found[1][1]) == ("1", "2") and found[0][2] == found[1][2]
    assert run("--end") == "ended\n"
