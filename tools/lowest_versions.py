"""Print the lowest version of each dependency that pyproject.toml allows, as requirements for pip.

    python tools/lowest_versions.py > lowest.txt

`make lowest` installs these and runs some tests with them, so that a lower bound is not only a guess.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

EXTRAS = ("rich", "postgres", "keyring", "server", "otel")  # without the frameworks, whose ranges are narrow
_BOUND = re.compile(r"(?P<name>[\w.-]+(?:\[[\w,-]+\])?)>=(?P<version>[\d.]+)")


def lowest(project: dict[str, object]) -> list[str]:
    """Requirements that pin each lower bound; a bound of two numbers takes the newest of its patch versions."""
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict) and isinstance(project["dependencies"], list)
    ranges = [*project["dependencies"], *(one for extra in EXTRAS for one in extras[extra])]
    pins = []
    for text in ranges:
        found = _BOUND.match(text)
        assert found is not None, f"{text} has no lower bound"
        version = found["version"]
        pins.append(f"{found['name']}=={version}" + ("" if version.count(".") > 1 else ".*"))
    return pins


if __name__ == "__main__":
    file = Path(__file__).resolve().parents[1] / "pyproject.toml"
    print("\n".join(lowest(tomllib.loads(file.read_text(encoding="utf-8"))["project"])))
