"""Waiting for what another process, thread or task will do: look, let a moment pass, look again.

Nothing is proved by how long it took. Whoever looks for too long without a break waits for something that never comes,
a signal that was lost, say. Then the look itself fails, where it stands, instead of holding up the test for ever.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import MutableMapping
from weakref import WeakKeyDictionary

PATIENCE = 600.0  # longer than anything that is waited for takes on a busy machine
_MOMENT = 0.005
# A pause between two looks that is longer than this, and the next one waits for something else.
_BREAK = 30.0

# Of each task or thread that looks: when it began to, and when it last did.
_looking: MutableMapping[object, tuple[float, float]] = WeakKeyDictionary()


class NeverCame(AssertionError):
    """What was waited for has not happened."""


async def look_again() -> None:
    """Let a moment pass before another look.

    Raises:
        NeverCame: it has been looked for too long.
    """
    _lose_patience(asyncio.current_task() or threading.current_thread())
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(_MOMENT, passed.set)
    await passed.wait()


def look_again_here() -> None:
    """The same for blocking code."""
    _lose_patience(threading.current_thread())
    threading.Event().wait(_MOMENT)


def _lose_patience(who: object) -> None:
    now = time.monotonic()
    began, last = _looking.get(who, (now, now))
    if now - last > _BREAK:
        began = now
    _looking[who] = (began, now)
    if now - began > PATIENCE:
        del _looking[who]
        raise NeverCame(f"looked for {now - began:.0f} s, and it never came")
