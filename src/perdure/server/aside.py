"""Work that would hold the event loop, done in a thread from its first read to its last byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from perdure._ground.bridge import drive

T = TypeVar("T")


async def aside(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What the coroutine returns. It may await what the library gives, and nothing else of an event loop."""
    return await asyncio.to_thread(lambda: drive(begin()))
