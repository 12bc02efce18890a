"""When a cron expression comes round, in a time zone, over both changes of the clock.

As Debian's cron does it: what is set for a time that the clock jumps over in spring runs right after the jump, and
what is set for a time that comes twice in autumn runs the first time. Expressions with `*` in minute or hour follow
the time that really passes. cronsim does the reckoning, and is imported when it is first used.
"""

from __future__ import annotations

from datetime import UTC, datetime

from perdure.errors import InvalidInput


def next_cron(expression: str, zone: str, after: datetime) -> datetime | None:
    """The next moment after this one, in UTC; None when there is none within 50 years.

    Raises:
        InvalidInput: the expression or the zone cannot be understood.
    """
    from cronsim import CronSim, CronSimError

    local = after.astimezone(_zone(zone))
    try:
        ticks = CronSim(expression, local)
    except CronSimError as problem:
        raise InvalidInput(
            f"{expression!r} is no cron expression: {problem}",
            do='write minute, hour, day of month, month and day of week: "0 9 * * 1-5" is 9:00 on working days',
        ) from None
    for tick in ticks:
        # In the hour that comes twice, the first of the two may lie before the moment that was asked for.
        if (found := tick.astimezone(UTC)) > after:
            return found
    return None


def _zone(name: str) -> datetime.tzinfo:  # type: ignore[valid-type]
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"there is no time zone {name!r} here",
            do="use a name such as Europe/Berlin; if none is known on this machine, install tzdata",
        ) from None
