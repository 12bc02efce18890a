"""When a message that was not taken is sent again. Pure.

A message is sent up to eight times within about a day and a half. A receiver that names a later moment in Retry-After
is heard, up to an hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

DELAYS = (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600)  # seconds after the first try, the second, …
SPREAD = 0.2  # each delay is longer or shorter by up to this part of it
_MOST_PATIENCE = 3600.0
_ASKS_FOR_PATIENCE = (429, 503)


def delay_after(tries: int, *, patience: float = 0.0, dice: float = 0.5) -> float | None:
    """Seconds until the next try, after so many; None when there is none. `dice` is from 0 to 1."""
    if tries > len(DELAYS):
        return None
    return max(DELAYS[tries - 1] * (1 + SPREAD * (2 * dice - 1)), min(patience, _MOST_PATIENCE))


def patience_asked(status: int | None, headers: Mapping[str, str], now: float) -> float:
    """The seconds that a receiver asks us to wait: Retry-After of a 429 or 503, in seconds or as a date."""
    text = headers.get("retry-after", "").strip()
    if status not in _ASKS_FOR_PATIENCE or not text or len(text) > 40:
        return 0.0
    if text.isascii() and text.isdecimal():
        return float(text) if len(text) < 10 else _MOST_PATIENCE
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now)
