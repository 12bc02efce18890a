"""What outgrows its limits is ended, also while nothing can be written down."""

from __future__ import annotations

import errno
from typing import Any

from perdure.keeper.core.limits import Limits
from perdure.keeper.core.units import Owner, Unit
from perdure.keeper.daemon import Keeper


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
        self.finished = self.door = self.folder = self

    alone = Keeper.alone

    def end(self, unit: Unit) -> None:
        self.ended.append(unit.uid)

    def save(self, unit: Unit) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    def tidy(self) -> None: ...

    def watch(self) -> None: ...


def test_a_full_disk_neither_saves_units_from_their_limits_nor_ends_the_watch() -> None:
    owner = Owner("default", "work", "t-1")
    units = [Unit(uid, "service", "web", owner, {}, "boot", 0.0, limits={"seconds": 1.0}) for uid in ("u-1", "u-2")]
    keeper: Any = OnAFullDisk(*units)
    Limits(keeper).watch()
    assert keeper.ended == ["u-1", "u-2"] and len(keeper.loop.later) == 1
    assert all("limit: 1 s" in unit.facts["why"] for unit in units)
