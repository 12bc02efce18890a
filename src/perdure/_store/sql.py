"""Read the SQL of an engine: one file per verb or query, found by name.

A file may hold several statements, each ending with a semicolon at the end of a line. A line
`--> name` stands for the statements of `_name.sql`: what several verbs do alike is written once. A line
`--? name` stays before its statement, for the engine: it is run only when that parameter is there.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


class Queries:
    """The statements of one folder, read when first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[str, ...]] = {}

    def __getitem__(self, name: str) -> tuple[str, ...]:
        statements = self._known.get(name)
        if statements is None:
            statements = self._known[name] = split(_text(self._folder / f"{name}.sql"))
        return statements

    def names(self) -> list[str]:
        return sorted(path.stem for path in self._folder.glob("*.sql") if not path.stem.startswith("_"))


@lru_cache(maxsize=256)
def _text(path: Path) -> str:
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("--> "):
            lines.append(_text(path.parent / f"_{line[4:].strip()}.sql"))
        elif not _is_comment(line):
            lines.append(line)
    return "\n".join(lines)


def split(script: str) -> tuple[str, ...]:
    """The statements of a script; comments are left out, so that engines can cache by text."""
    statements, current = [], []
    for line in script.splitlines():
        if _is_comment(line) or not line.strip():
            continue
        current.append(line)
        if line.rstrip().endswith(";"):
            statements.append("\n".join(current).rstrip().rstrip(";"))
            current = []
    if current:
        raise ValueError(f"the last statement does not end with a semicolon: {current[0]!r}")
    return tuple(statements)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("--") and not line.startswith("--? ")
