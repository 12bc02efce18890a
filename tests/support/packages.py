"""Programs that tests need and a machine may not have: installed where that is possible, else the test is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

_INSTALL = ("apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "-qq")


def need(program: str, package: str | None = None) -> str:
    """Where it is; skips the test if it is not here and cannot be had."""
    found = shutil.which(program)
    if found is None and os.getuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-qq"], check=False, capture_output=True)
        subprocess.run([*_INSTALL, package or program], check=False, capture_output=True)
        found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not here and cannot be installed")
    return found
