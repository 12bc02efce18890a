"""`perdure worker`, `perdure up` and `perdure drain`, as a person starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure
from perdure._ground.bridge import drive
from tests.support.waiting import look_again_here
from tests.worker.agent import break_down, greet, left_alone, patient
from tests.worker.kit import lines

HERE = Path(__file__).parent
PATIENCE = 120


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/store/p.db"


@contextmanager
def started(url: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "perdure", *arguments]
    environ = {**os.environ, "PERDURE_URL": url, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str], *words: str) -> str:
    """The next line that has all these words."""
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        if all(word in line for word in words):
            return line
    raise AssertionError(f"it never said {words}: {process.stderr.read()}")


def test_a_worker_says_what_it_does_and_leaves_on_sigterm(url: str, tmp_path: Path) -> None:
    app = Perdure(url)
    drive(app.start("hello", greet, "ada"))
    with started(url, "worker", f"{HERE}/agent.py:app", "--concurrency", "3", "--queue", "default") as worker:
        assert "greet" in said(worker, "queues: default")
        said(worker, "hello started (attempt 1)")
        said(worker, "hello completed")
        worker.send_signal(signal.SIGTERM)
        said(worker, "stopped:")
        assert worker.wait(PATIENCE) == 0
    drive(app.close())


def test_a_worker_says_where_a_task_failed(url: str) -> None:
    app = Perdure(url)
    drive(app.start("broken", break_down, "ada"))
    with started(url, "worker", f"{HERE}/agent.py:app") as worker:
        assert said(worker, "broken failed") == "broken failed: LookupError: nobody is called ada,\n"
        assert worker.stdout is not None
        lines = [worker.stdout.readline() for _ in range(6)]
        assert lines[0] == "  or has ever been\n"
        assert lines[1].startswith("  at agent.py:") and "in break_down: raise LookupError" in lines[1]
        assert lines[2] == "  Traceback (most recent call last):\n" and "in break_down" in lines[3]
    drive(app.start("broken again", break_down, "ada"))
    with started(url, "--json", "worker", f"{HERE}/agent.py:app") as worker:
        told = json.loads(said(worker, '"event": "failed"'))
        assert told["error"] == "LookupError: nobody is called ada,\nor has ever been"
        assert told["traceback"].startswith("at agent.py:")
    drive(app.close())


def test_the_garbage_collector_does_not_look_through_what_a_worker_has_loaded(url: str) -> None:
    app = Perdure(url)
    handle = drive(app.start("look", left_alone))
    with started(url, "worker", f"{HERE}/agent.py:app") as worker:
        said(worker, "look completed")
        assert drive(handle.result()) is True


def test_a_module_is_found_from_the_current_folder_and_lines_may_be_json(url: str) -> None:
    with started(url, "--json", "worker", "tests.worker.agent:app") as worker:
        assert worker.stdout is not None
        first = json.loads(worker.stdout.readline())
        assert first["event"] == "working" and "greet" in first["knows"]
        worker.send_signal(signal.SIGINT)
        assert json.loads(worker.stdout.readline()) == {"event": "left"}
        assert worker.wait(PATIENCE) == 130


@pytest.mark.parametrize(
    "target, told",
    [
        ("no_such_module:app", "there is no module no_such_module"),
        ("no/such/file.py:app", "there is no file"),
        (f"{HERE}/agent.py:not_an_app", "is not an app (an object of Perdure); the module has app"),
        (f"{HERE}/agent.py:missing", "is not an app"),
    ],
)
def test_what_cannot_be_loaded_is_a_usage_error(url: str, target: str, told: str) -> None:
    with started(url, "worker", target) as worker:
        _, error = worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 2 and told in error


@pytest.mark.parametrize("code", ["import sys; sys.exit(3)", "int('agent.py')"])
def test_a_script_that_is_not_made_to_be_imported_is_told_what_to_do(url: str, tmp_path: Path, code: str) -> None:
    (tmp_path / "script.py").write_text(code)
    with started(url, "worker", f"{tmp_path}/script.py:app") as worker:
        _, error = worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 2 and 'if __name__ == "__main__":' in error


def test_a_store_that_was_never_there_is_said_at_once() -> None:
    with started("postgresql://nobody@127.0.0.1:9/none", "worker", f"{HERE}/agent.py:app") as worker:
        worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 7


@pytest.mark.req("R39")
def test_drain_makes_workers_leave_and_the_task_goes_on_elsewhere(url: str, tmp_path: Path) -> None:
    path, gate = tmp_path / "said", tmp_path / "gate"
    app = Perdure(url)
    drive(app.start("task", patient, str(path), str(gate)))
    with started(url, "worker", f"{HERE}/agent.py:app") as first:
        said(first, "task started")
        _until(lambda: lines(path) == ["began"])
        with started(url, "drain") as drain:
            gate.touch()
            output, _ = drain.communicate(timeout=PATIENCE)
            assert (drain.returncode, output) == (0, "1 worker drained\n")
        assert first.wait(PATIENCE) == 0
    with started(url, "worker", f"{HERE}/agent.py:app") as second:
        if drive(_status(app)) != "completed":
            said(second, "task completed")
    assert lines(path) == ["began", "ended"]
    drive(app.close())


@pytest.mark.req("R112")
def test_up_starts_a_worker_again_that_was_killed(url: str, tmp_path: Path) -> None:
    path, gate = tmp_path / "said", tmp_path / "gate"
    app = Perdure(url)
    with started(url, "up", f"{HERE}/agent.py:app", "--workers", "2") as up:
        pids = [int(said(up, f"worker {n} started").rpartition("pid ")[2].rstrip(")\n")) for n in (1, 2)]
        drive(app.start("task", patient, str(path), str(gate)))
        started_by = said(up, "task started")
        assert started_by
        _until(lambda: lines(path) == ["began"])
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        said(up, "ended (SIGKILL)")
        said(up, "task started (attempt 2)")
        gate.touch()
        said(up, "task completed")
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE) == 0
    drive(app.close())


async def _status(app: Perdure) -> Any:
    record = await app.tasks.get("task")
    return record.status if record else None


def _until(is_so: Any) -> None:
    import time

    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        look_again_here()


@pytest.mark.req("R112", "R147")
def test_the_example_goes_on_after_its_worker_was_killed(url: str) -> None:
    example = str(HERE.parents[1] / "examples" / "worker.py")
    environ = {**os.environ, "PERDURE_URL": url, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, example, "start"], check=True, env=environ, stdout=subprocess.DEVNULL)
    with started(url, "worker", f"{example}:app") as first:
        said(first, "packed 3")
        first.kill()
    with started(url, "worker", f"{example}:app") as second:
        for _ in range(3):
            said(second, "completed")
    app = Perdure(url)
    for number in (1, 2, 3):
        record = drive(_record(app, f"order-{number}"))
        assert record.result == f"tracking-order-{number}"
    drive(app.close())


async def _record(app: Perdure, id: str) -> Any:
    return await app.tasks.get(id)
