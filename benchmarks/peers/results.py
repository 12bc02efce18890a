"""What a run has found, and the file it is kept in. Pure, but for reading and writing that file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers.contestants import CONTESTANTS, comparison

RECORDED = Path(__file__).resolve().parent / "results.json"


@dataclass
class Results:
    """Values stand in the order of the rounds, so that those of one round can be compared."""

    date: str
    machine: dict[str, Any]
    quick: bool
    rounds: int = 0  # that were finished
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # figure → contestant → values
    versions: dict[str, str] = field(default_factory=dict)
    durability: dict[str, str] = field(default_factory=dict)  # contestant → settings
    failed: dict[str, dict[str, str]] = field(default_factory=dict)  # line → contestant → why
    left_out: dict[str, str] = field(default_factory=dict)  # who → why
    loads: list[float] = field(default_factory=list)  # of the machine, at the start of each measurement

    @classmethod
    def read(cls, path: Path = RECORDED) -> Results:
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path = RECORDED) -> None:
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def add(self, figure: str, contestant: str, value: float) -> None:
        self.values.setdefault(figure, {}).setdefault(contestant, []).append(round(value, 4))

    def median_of(self, figure: str, contestant: str) -> float | None:
        found = self.values.get(figure, {}).get(contestant)
        return median(found) if found else None

    def ratios(self, figure: str, contestant: str) -> list[float]:
        """How many times better ours was, round by round; below 1 theirs was better."""
        each = self.values.get(figure, {})
        ours, theirs = each.get(CONTESTANTS[contestant].beside, []), each.get(contestant, [])
        return [comparison(figure, one, other) for one, other in zip(ours, theirs, strict=False)]
