"""What outgrows its limits is ended, also while nothing can be written down."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from perdure.keeper.limits import Limits
from perdure.keeper.units import Owner, Unit


class Loop:
    def __init__(self) -> None:
        self.later: list[Any] = []

    def call_later(self, seconds: float, act: Any) -> None:
        self.later.append(act)

    def time(self) -> float:
        return 0.0


class OnAFullDisk:
    """As much of a keeper as limits need."""

    def __init__(self, *units: Unit) -> None:
        self.units, self.held, self.loop, self.ended = units, {}, Loop(), list[str]()
        self.finished = self.door = self

    def end(self, unit: Unit) -> None:
        self.ended.append(unit.uid)

    def save(self, unit: Unit) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    def tidy(self) -> None: ...

    def watch(self) -> None: ...


def test_a_full_disk_neither_saves_a_unit_from_its_limit_nor_ends_the_watch() -> None:
    unit = Unit("u-1", "service", "web", Owner("default", "work", "t-1"), {}, "boot", 0.0, limits={"seconds": 1.0})
    keeper: Any = OnAFullDisk(unit)
    with pytest.raises(OSError, match="no space"):
        Limits(keeper).watch()
    assert keeper.ended == ["u-1"] and len(keeper.loop.later) == 1
    assert "limit: 1 s" in unit.facts["why"]
