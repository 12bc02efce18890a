"""`perdure demo` shows what it says, on either database and beside the dashboard, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from playwright.sync_api import expect

from tests.support import postgres
from tests.support.browser import log_in, running_chromium, watching

DEMO = [sys.executable, "-m", "perdure", "demo", "--json", "--database"]
PATIENCE = 120_000


@pytest.mark.req("R79", "R82", "R83", "R59")
def test_everything_comes_back_on_postgres() -> None:
    postgres.ensure_server()  # which says why, where none can be started
    shown = subprocess.run([*DEMO, "postgres"], text=True, capture_output=True, timeout=300, check=False)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert_good(shown.stdout)


@pytest.mark.req("R79", "R82", "R83", "R59")
def test_the_dashboard_beside_the_demo_shows_the_agent_die_and_continue_and_nothing_stays_behind(
    tmp_path: Path,
) -> None:
    demo = subprocess.Popen(
        [*DEMO, "sqlite", "--watch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with demo, running_chromium() as browser:
        assert demo.stdin is not None and demo.stdout is not None and demo.stderr is not None
        link = line_with(demo.stderr, "the dashboard: ").removeprefix("the dashboard: ")
        with watching(browser, link.partition("/link")[0]) as watched:
            page = watched.page()
            log_in(page, link)
            expect(page.get_by_role("heading", name="No task yet")).to_be_visible()
            line_with(demo.stderr, "Enter begins")
            demo.stdin.write("\n")
            demo.stdin.flush()
            page.get_by_role("link", name="migrate-prod").first.click(timeout=PATIENCE)
            expect(page.locator(".facts")).to_contain_text("attempt 2", timeout=PATIENCE)
            expect(page.locator(".task-head")).to_contain_text("completed", timeout=PATIENCE)
            line_with(demo.stderr, "The dashboard stays")
        told, errors = demo.communicate("\n", timeout=120)
    assert demo.returncode == 0, errors
    assert_good(told)
    assert list(tmp_path.iterdir()) == []


def assert_good(told: str) -> None:
    found = json.loads(told)
    assert [proof["what"] for proof in found["proofs"] if not proof["is_good"]] == []
    assert found["good"]


def line_with(lines: IO[str], words: str) -> str:
    found = next((line for line in lines if words in line), None)
    assert found is not None, f"the demo has ended without saying {words!r}"
    return found.strip()


def test_without_git_the_demo_says_what_it_lacks_and_starts_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "perdure", "demo"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "git is not installed" in done.stderr and "a defect of perdure" not in done.stderr
    assert list(tmp_path.iterdir()) == []
