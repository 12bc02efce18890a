"""The measured figures and their budgets. Pure.

A figure is shown beside its floor: the time of the bare library or the bare disk in the same run. A budget is computed
from that floor, so it means the same on a fast machine and on a slow one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

# Above this, the machine was busy with something else, and a ratio means little.
NOISY = 2.0


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one measurement, round by round."""

    values: Sequence[float]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def spread(self) -> float:
        """The largest value divided by the smallest."""
        return max(self.values) / least if (least := min(self.values)) > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Budget:
    """A bound in the figure's own unit, and its text in the report."""

    bound: float
    text: str
    at_least: bool = False

    def is_met_by(self, figure: float) -> bool:
        return figure >= self.bound if self.at_least else figure <= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the report."""

    name: str
    what: str
    unit: str
    figure: float
    floor: float | None = None
    floor_is: str = ""
    floor_spread: float | None = None
    prototype: float | None = None
    budget: Budget | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """The figure divided by its floor."""
        return self.figure / self.floor if self.floor else None

    @property
    def met(self) -> bool | None:
        """True if the budget is met; None without a budget."""
        return self.budget.is_met_by(self.figure) if self.budget is not None else None

    @property
    def is_noisy(self) -> bool:
        return self.floor_spread is not None and self.floor_spread > NOISY


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The lines of one engine, or, for `process`, the lines without a store."""

    engine: str
    where: str
    figures: Sequence[Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    quick: bool
    machine: Mapping[str, Any]
    sections: Sequence[Section]
    left_out: Mapping[str, str]

    @property
    def missed(self) -> list[str]:
        """The lines that missed their budget."""
        return [f"{s.engine}: {figure.what}" for s in self.sections for figure in s.figures if figure.met is False]


def figure_of(
    name: str,
    what: str,
    unit: str,
    rounds: Mapping[str, Series],
    *,
    floor_is: str,
    budget: Budget | None = None,
    **detail: Any,
) -> Figure:
    """A figure made from its rounds: `ours`, `floor`, and `prototype` if it was measured."""
    prototype = rounds.get("prototype")
    return Figure(
        name=name,
        what=what,
        unit=unit,
        figure=rounds["ours"].median,
        floor=rounds["floor"].median,
        floor_is=floor_is,
        floor_spread=rounds["floor"].spread,
        prototype=prototype.median if prototype is not None else None,
        budget=budget,
        detail={**detail, "rounds": len(rounds["ours"].values), "spread": rounds["ours"].spread},
    )
