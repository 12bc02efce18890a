"""Counters and histograms of one server, kept by namespace. Labels are bounded: past 200 values, `other` counts."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from perdure.server.telemetry.catalogue import BY_NAME

_MOST = 200
OTHER = "other"
Labels = tuple[str, ...]


@dataclass(slots=True)
class Histogram:
    """A histogram: how many values were at most each bound."""

    counts: list[int]
    sum: float = 0.0


@dataclass(slots=True)
class Figures:
    """The counters of one namespace."""

    counters: dict[str, dict[Labels, int]] = field(default_factory=lambda: defaultdict(dict))
    histograms: dict[str, dict[Labels, Histogram]] = field(default_factory=lambda: defaultdict(dict))

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        known = self.counters[name]
        place = _bounded(known, labels)
        known[place] = known.get(place, 0) + by

    def observe(self, name: str, value: float, *labels: str) -> None:
        known = self.histograms[name]
        place = _bounded(known, labels)
        buckets = BY_NAME[name].buckets
        if place not in known:
            known[place] = Histogram([0] * (len(buckets) + 1))
        known[place].counts[bisect_left(buckets, value)] += 1
        known[place].sum += value

    def buckets_of(self, name: str) -> Iterator[tuple[Labels, list[tuple[str, int]], float]]:
        """Labels, cumulative buckets and the sum of each histogram of this name."""
        bounds = [*(f"{bound:g}" for bound in BY_NAME[name].buckets), "+Inf"]
        for labels, one in self.histograms[name].items():
            total, rows = 0, []
            for bound, count in zip(bounds, one.counts, strict=True):
                total += count
                rows.append((bound, total))
            yield labels, rows, one.sum


def _bounded(known: dict[Labels, object] | dict[Labels, int] | dict[Labels, Histogram], labels: Labels) -> Labels:
    return labels if labels in known or len(known) < _MOST else (OTHER,) * len(labels)
