"""Run a program as a reader of the documentation would: to its end, or killed at a line it prints."""

from __future__ import annotations

import subprocess
from pathlib import Path


def run(argv: list[str], folder: Path) -> str:
    """What it prints; it must end well."""
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def kill_after(argv: list[str], folder: Path, line: str) -> list[str]:
    """Run it and SIGKILL it as soon as it has printed that line; what it printed so far."""
    seen = []
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for printed in child.stdout:
            seen.append(printed.strip())
            if seen[-1] == line:
                child.kill()
                break
    return seen
