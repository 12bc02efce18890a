"""What tests of memory share: an empty store, and a git repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def memory_url() -> str:
    """An empty store in memory: for what is about layers and not about disks."""
    return f"memory://memory-{os.urandom(6).hex()}"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with one commit and somebody to commit as."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    folder = tmp_path / "repository"
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    (folder / "README").write_text("first\n")
    git(folder, "add", "README")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout
