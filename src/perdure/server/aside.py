"""Work that would hold the event loop, done in a thread from its first read to its last byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from perdure._ground.bridge import drive

T = TypeVar("T")


async def aside(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The coroutine's result. The coroutine may await only coroutines of the library, and nothing else of an event
    loop."""
    return await asyncio.to_thread(lambda: drive(begin()))
