"""A test that hangs, or whose processes do, fails in time and leaves nothing running."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.processes import Link, Nursery, say

_FAILS_AND_HANGS = """
import threading, pytest

@pytest.fixture
def hanging():
    yield
    threading.Event().wait(60)

def test_it(hanging):
    raise ValueError
"""

_DIES_WHILE_IT_WAITS = """
import os, threading
from tests.support.processes import Nursery
from tests.crash.test_hanging_tests import hang

children = Nursery()
child = children.start(hang)
child.heard()
print(children._process.pid, child.pid, flush=True)
threading.Thread(target=child.wait, daemon=True).start()
input()
os._exit(1)
"""


def hang(link: Link) -> None:
    say(link, "here")
    threading.Event().wait()


def test_a_teardown_that_hangs_after_a_failure_is_ended(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(_FAILS_AND_HANGS)
    limits = ("-o", "faulthandler_timeout=1", "-o", "faulthandler_exit_on_timeout=true")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.hang_watchdog", *limits, str(tmp_path)]
    ran = subprocess.run(command, check=False, cwd=tmp_path, env=_with_tests(), capture_output=True, timeout=120)
    assert ran.returncode == 1
    assert b"Timeout (0:00:01)!" in ran.stderr


def test_a_child_that_does_not_end_is_killed(children: Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    child = children.start(hang)
    child.heard()
    monkeypatch.setattr(processes, "PATIENCE", 0.01)
    with pytest.raises(TimeoutError, match="has not ended"):
        child.wait()
    assert child.wait() == -9


def test_a_child_that_says_nothing_fails_its_caller(children: Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.01)
    with pytest.raises(TimeoutError, match="has said nothing"):
        children.run(wait_for_ever)


def wait_for_ever(link: Link) -> None:
    threading.Event().wait()


def test_children_are_ended_while_another_thread_waits_for_one_of_them(children: Nursery) -> None:
    with children.clearing():
        children.start(hang).heard()
        second = children.start(hang)
        second.heard()
        waiting = threading.Thread(target=second.wait)
        waiting.start()
    waiting.join(processes.PATIENCE)
    assert not waiting.is_alive()


def test_a_nursery_does_not_outlive_the_process_that_waits_for_one_of_its_children() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _DIES_WHILE_IT_WAITS],
        cwd=processes.ROOT,
        env=_with_tests(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None and process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        watched = [os.pidfd_open(pid) for pid in pids]
        process.stdin.write(b"\n")
        process.stdin.flush()
        for pidfd in watched:
            assert select.select([pidfd], [], [], 30)[0], "it lives on"
            os.close(pidfd)


def _with_tests() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(processes.ROOT), *sys.path]))}
