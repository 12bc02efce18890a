"""When a cron expression is due, in a time zone, over both changes of the clock.

As in Debian's cron: a time skipped by the clock in spring is due right after the jump, and a time that occurs twice in
autumn is due the first time. Expressions with `*` in minute or hour follow real time. cronsim does the arithmetic, and
is imported when first used.
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
            f"{expression!r} is not a cron expression: {problem}",
            do='write minute, hour, day of month, month and day of week: "0 9 * * 1-5" is 9:00 on working days',
        ) from None
    for tick in ticks:
        # In the hour that occurs twice, the first of the two can be before the requested moment.
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
