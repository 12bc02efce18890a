"""Await something that needs an event loop, also where there is none.

On a loop it is simply awaited. Blocking code (`perdure.sync`, the command line, an effect that is a plain `def`) runs
it on another loop in another thread, and waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from perdure._ground.bridge import Hop

T = TypeVar("T")


class Aside(Hop[T], Generic[T]):
    __slots__ = ("_work",)

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work

    def on_loop(self) -> Generator[Any, None, T]:
        return (yield from self._work.__await__())

    def block(self) -> T:
        done: list[T] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                done.append(asyncio.run(self._work))
            except BaseException as error:
                failed.append(error)

        context = copy_context()
        thread = threading.Thread(target=context.run, args=(work,), name="perdure-aside")
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return done[0]
