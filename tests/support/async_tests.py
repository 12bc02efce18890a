"""Run `async def test_…`: each in an event loop of its own, also under @given."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    if (given := getattr(test, "hypothesis", None)) is not None:
        if inspect.iscoroutinefunction(given.inner_test):
            given.inner_test = blocking(given.inner_test)
        return None
    if not inspect.iscoroutinefunction(test):
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    blocking(test)(**wanted)
    return True


def blocking(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The same test as a plain function that runs it in a new event loop."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run
