"""A large state costs what is done with its bytes, not fresh memory for each copy of it."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import resource, sys
from perdure import sync

app = sync.Perdure(sys.argv[1])
task = app.tasks.open("job", state={"messages": []})
with task.attempt():
    for _ in range(100):
        task.append("messages", "y" * 5000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        task.append("messages", "y" * 1000)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 20)
"""


@pytest.mark.req("R102")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what is measured is a rule of glibc")
def test_a_growing_state_is_not_copied_into_fresh_memory_each_time(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"sqlite://{tmp_path}/store/perdure.db"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert int(done.stdout) < 60, "0.5 MB are 125 pages"
