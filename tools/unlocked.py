"""Print the installed packages that requirements/ci.txt does not name, for make_venv.sh to remove. Needs no package."""

from __future__ import annotations

import re
from importlib.metadata import distributions
from pathlib import Path

_KEPT = {"pip", "setuptools", "perdure"}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    locked = re.findall(r"^([\w.-]+)==", Path("requirements/ci.txt").read_text(encoding="utf-8"), re.MULTILINE)
    installed = {plain(one.metadata["Name"]) for one in distributions()}
    print(*sorted(installed - {plain(name) for name in locked} - _KEPT))
