"""Ctrl-C in a thread that commits: heard, and obeyed when the commit is known to be in or not."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def undisturbed() -> Iterator[None]:
    """Have Ctrl-C wait until the block has ended; the second one does not.

    Between COMMIT and its being known, an interrupt would have the batch sent again and refused.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield
        return
    heard: list[FrameType | None] = []

    def remember(number: int, frame: FrameType | None) -> None:
        if heard:
            signal.default_int_handler(number, frame)
        heard.append(frame)

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard:
            raise KeyboardInterrupt
