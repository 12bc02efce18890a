"""Waiting for what another process, thread or task will do: look, let a moment pass, look again.

Nothing is proved by how long it took; whoever waits too long is a hang, and says what it waited for.
"""

from __future__ import annotations

import asyncio
import threading

_MOMENT = 0.005


async def look_again() -> None:
    """Let a moment pass before another look."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(_MOMENT, passed.set)
    await passed.wait()


def look_again_here() -> None:
    """The same for blocking code."""
    threading.Event().wait(_MOMENT)
