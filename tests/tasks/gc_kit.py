"""For the tests of gc: what it is to remove, and something done at the same moment."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from perdure.types import Task

HOUR = timedelta(hours=1)


def noise(size: int, seed: int = 0) -> bytes:
    """Bytes that no compression makes smaller."""
    return random.Random(seed).randbytes(size)


async def seqs_of(task: Task) -> list[int]:
    return [checkpoint.seq async for checkpoint in task.checkpoints()]


def asyncio_run_elsewhere(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    thread.join()
