"""The crash kit that every adapter is put through.

An agent notes what it does to the world in a file, one line a deed, flushed before it goes on. It is killed (kill -9)
at a named point, started again, killed at the next, and so on. Afterwards the file says what happened how often.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.processes import ChildDied, Nursery, die


class Ledger:
    """What happened outside, whatever perdure says of it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, deed: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{deed}\n")
            file.flush()
            os.fsync(file.fileno())

    def counts(self) -> Counter[str]:
        return Counter(self.path.read_text().split("\n")[:-1]) if self.path.exists() else Counter()


class Fate:
    """Where a process is to die. Points are passed often; the first passing is the one that kills."""

    def __init__(self, point: str) -> None:
        self._point = point

    def passes(self, point: str) -> None:
        if point == self._point:
            die()


class Lives:
    """One agent, in one process after another."""

    def __init__(self, nursery: Nursery, url: str, ledger: Ledger) -> None:
        self.nursery, self.url, self.ledger = nursery, url, ledger

    def live(self, agent: Callable[..., Any], *arguments: Any) -> Any:
        """One life, to its end: what the agent returns."""
        return self.nursery.run(agent, self.url, self.ledger.path, "", *arguments)

    def die_at(self, agent: Callable[..., Any], points: Sequence[str], *arguments: Any) -> None:
        """One life for each point; each must end there."""
        for point in points:
            try:
                said = self.nursery.run(agent, self.url, self.ledger.path, point, *arguments)
            except ChildDied:
                continue
            raise AssertionError(f"the agent did not come to {point!r}: {said!r}")
