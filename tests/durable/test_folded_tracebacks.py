"""A failed task in a plain script: Python prints the user's frames, and none of perdure between them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import perdure

OURS = str(Path(perdure.__file__).parent)

JOB = """
import asyncio
from perdure import Perdure, durable, step

@step
async def fetch(url):
    return inner(url)

def inner(url):
    raise KeyError(url)

async def plan():
    return await fetch("book.txt")

@durable
async def book():
    return await plan()

async def main():
    async with Perdure("store.db") as app:
        await app.run("book-1", book)

asyncio.run(main())
"""
BLOCKING = """
from perdure import durable, step
from perdure.sync import Perdure

@step(raises=[ValueError])
def price(text):
    return float(text)

@durable
def order():
    return price("n/a")

def main():
    with Perdure("store.db") as app:
        app.run("order-1", order)

main()
"""
DEFECT = """
import asyncio
from perdure import Perdure, durable
from perdure._durable.lifecycle import app_run

@durable
async def book():
    pass

async def main():
    app_run.check_call = None
    async with Perdure("store.db") as app:
        await app.run("book-1", book)

asyncio.run(main())
"""


def printed(folder: Path, script: str, **env: str) -> list[str]:
    """The frames that Python prints for a script that fails, as `function` or `perdure:function`."""
    file = folder / "job.py"
    file.write_text(script)
    done = subprocess.run(
        [sys.executable, str(file)],
        cwd=folder,
        env={**os.environ, "PERDURE_DEBUG": "", **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    frames = [line.strip() for line in done.stderr.splitlines() if line.startswith('  File "')]
    return [("perdure:" if OURS in line else "") + line.rpartition(" in ")[2] for line in frames]


def test_a_failed_task_prints_the_frames_of_the_user_and_none_of_perdure(tmp_path: Path) -> None:
    frames = [frame for frame in printed(tmp_path, JOB) if frame not in ("run", "run_until_complete")]
    assert frames == ["fetch", "inner", "<module>", "main", "book", "plan"]


def test_a_blocking_script_prints_one_frame_of_perdure(tmp_path: Path) -> None:
    frames = printed(tmp_path, BLOCKING)
    assert frames == ["price", "<module>", "main", "perdure:run", "order"]


def test_perdure_debug_prints_every_frame(tmp_path: Path) -> None:
    frames = printed(tmp_path, JOB, PERDURE_DEBUG="1")
    assert "perdure:run_here" in frames
    assert "inner" in frames


def test_a_defect_of_perdure_keeps_the_frames_in_which_it_was_raised(tmp_path: Path) -> None:
    assert "perdure:run_here" in printed(tmp_path, DEFECT)


@pytest.mark.parametrize("debug", ["", "1"])
def test_the_stored_trace_does_not_depend_on_the_printed_one(tmp_path: Path, debug: str) -> None:
    printed(tmp_path, JOB, PERDURE_DEBUG=debug)
    shown = subprocess.run(
        [sys.executable, "-m", "perdure", "show", "book-1"],
        cwd=tmp_path,
        env={**os.environ, "PERDURE_URL": "store.db"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "in inner" in shown.stdout, shown.stdout + shown.stderr
