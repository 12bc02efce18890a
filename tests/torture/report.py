"""What a run of torture tried and found, as a page of Markdown."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class CannotRun(Exception):
    """A part lacks something on this machine; the text says what. It is left out, and nothing is said to hold."""


@dataclass
class PartReport:
    """One part: the seeds that ran, those that failed, and how long they took."""

    name: str
    about: str
    mutants: Sequence[str] = ()  # what each seed breaks
    tried: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    left: int = 0  # seeds that were not reached in the time
    left_out: str = ""  # why it cannot run here
    minutes: float = 0.0

    def repeated(self, seed: int) -> str:
        """The command that runs one seed again."""
        return f"python -m tests.torture --part {shlex.quote(self.name)} --seeds {seed}-{seed}"

    @property
    def seeds(self) -> str:
        return f"left out: {self.left_out}" if self.left_out else _spans(self.tried)

    def mutants_of(self, seeds: Iterable[int]) -> list[str]:
        return [self.mutants[seed] for seed in seeds]


@dataclass
class Report:
    """All parts of one run."""

    arguments: str
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    parts: list[PartReport] = field(default_factory=list)

    @property
    def failed(self) -> list[tuple[PartReport, int]]:
        return [(part, seed) for part in self.parts for seed in part.failed]

    def markdown(self) -> str:
        minutes = sum(part.minutes for part in self.parts)
        ended = datetime.now(UTC)
        lines = [
            "# Torture report",
            "",
            f"- command: `python -m tests.torture {self.arguments}`",
            f"- commit: {_commit()}",
            f"- began: {self.began:%Y-%m-%d %H:%M} UTC, ended: {ended:%Y-%m-%d %H:%M} UTC",
            f"- machine: {platform.system()} {platform.release()}, Python {platform.python_version()}, "
            f"{os.cpu_count()} cores",
            f"- tried: {sum(len(part.tried) for part in self.parts):,} seeds in {minutes:.1f} minutes",
            f"- **violations: {len(self.failed)}**",
            "",
            "| part | what it tries | seeds | minutes | failed | not reached |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {part.name} | {part.about} | {part.seeds} | {part.minutes:.1f} | {len(part.failed)} | {part.left:,} |"
            for part in self.parts
        ]
        lines += self._mutant_lines()
        if self.failed:
            lines += ["", "## Failed", "", "Each line repeats one failure.", "", "```console"]
            lines += [f"$ {part.repeated(seed)}" for part, seed in self.failed] + ["```"]
        return "\n".join(lines) + "\n"

    def _mutant_lines(self) -> list[str]:
        """Which broken lines were noticed. A survivor is a promise that no test guards."""
        lines: list[str] = []
        for part in self.parts:
            if not part.mutants:
                continue
            caught = part.mutants_of(seed for seed in part.tried if seed not in part.failed)
            survived = part.mutants_of(part.failed)
            lines += ["", f"## Mutants: {part.name}", "", f"{part.about}.", ""]
            lines += [f"- caught, {len(caught)} of {len(part.mutants)}: {_listed(caught)}"]
            lines += [f"- survived: {_listed(survived)}"]
            left_out = part.mutants_of(seed for seed in range(len(part.mutants)) if seed not in part.tried)
            lines += [f"- not tried: {_listed(left_out)}"] if left_out else []
        return lines

    def write(self, path: Path) -> None:
        """Write the page whole: a reader never sees half of it."""
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(self.markdown(), encoding="utf-8")
        fresh.replace(path)


def _listed(names: Sequence[str]) -> str:
    return "; ".join(names) or "none"


def _spans(seeds: list[int]) -> str:
    """Seeds as spans: `0-99, 400` (and how many, when there are too many spans to list)."""
    spans: list[tuple[int, int]] = []
    for seed in sorted(seeds):
        if spans and spans[-1][1] == seed - 1:
            spans[-1] = (spans[-1][0], seed)
        else:
            spans.append((seed, seed))
    told = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans[:4])
    more = f" … ({len(seeds):,} in all)" if len(spans) > 4 else ""
    return f"{told or 'none'}{more}"


def _commit() -> str:
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    return asked.stdout.strip() or "unknown"
