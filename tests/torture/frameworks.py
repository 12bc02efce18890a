"""Adapters whose frameworks cannot be installed beside the others: their tests, each in an environment of its own.

    python -m tests.torture --part frameworks

The environment is made anew in build/, from the extra that users install. It needs a package index.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The folder of an adapter, and why it is apart.
APART = {"strands": "it needs mcp<2.2, and perdure mcp needs mcp>=2.3"}

_RANGE = "test_the_installed_framework_is_in_the_range_that_was_tested"


def run(seed: int) -> None:
    name = list(APART)[seed]
    tests = [f"tests/integrations/{name}", f"tests/integrations/test_frameworks.py::{_RANGE}[{name}]"]
    extra = f".[postgres,{name.replace('_', '-')}]"
    command = ["sh", "tools/try_versions.sh", sys.executable, f"build/{name}", extra, "-n", "0", *tests]
    subprocess.run(command, cwd=ROOT, check=True)
