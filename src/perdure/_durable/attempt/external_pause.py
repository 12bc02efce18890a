"""Stand still inside a durable function whose task was paused beside its journal."""

from __future__ import annotations

from perdure._durable.attempt.scopes import current_attempt


async def stand_still() -> None:
    """Give the task up until it is resumed, and then begin anew: does not return. Elsewhere it just returns.

    Nothing is recorded: whether one has to wait here depends on the world, and may be otherwise at the next replay.
    """
    attempt = current_attempt()
    if attempt is not None:
        attempt.drain()
        await attempt.suspend("~still")
