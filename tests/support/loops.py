"""The kinds of event loops that durable functions are tested on."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

PLAIN, UVLOOP, EAGER = "plain", "uvloop", "eager"
# Eager tasks begin at once, inside create_task(); Python has them from 3.12 on.
KINDS = (PLAIN, UVLOOP, EAGER) if sys.version_info >= (3, 12) else (PLAIN, UVLOOP)


def is_here(kind: str) -> bool:
    return kind != UVLOOP or importlib.util.find_spec("uvloop") is not None


def skip_unless_here(kind: str) -> None:
    if not is_here(kind):
        pytest.skip("uvloop is not installed")


def run(kind: str, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a new loop of this kind."""
    factory = None
    if kind == UVLOOP:
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        if kind == EAGER:
            runner.get_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
        return runner.run(work)
