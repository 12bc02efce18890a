"""The spending limits of a task. perdure/_durable/models counts what it has spent."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure._ground.durations import Duration, require_timedelta
from perdure.errors import InvalidInput


class Budget(Struct, frozen=True, kw_only=True):
    """What a task may spend; None: no limit. Money is in the currency of the prices."""

    tokens: int | None = None
    money: float | None = None
    time: timedelta | None = None

    if TYPE_CHECKING:  # the time can be given as text

        def __init__(
            self, *, tokens: int | None = None, money: float | None = None, time: Duration | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        force_setattr(self, "time", require_timedelta("time", self.time))
        for name in ("tokens", "money"):
            limit = getattr(self, name)
            if limit is not None and not _is_at_least(limit, 0):  # and so no NaN
                raise InvalidInput(f"a budget cannot have {name}={limit!r}", do="give a number from 0 up")


def _is_at_least(limit: Any, least: Any) -> bool:
    try:
        return bool(limit >= least)
    except TypeError:
        return False
