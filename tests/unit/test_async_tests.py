"""Async tests run, and can fail."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.async_tests import blocking


@pytest.fixture
def word() -> str:
    return "word"


async def test_an_async_test_runs_in_a_loop_with_its_fixtures(word: str) -> None:
    await asyncio.sleep(0)
    assert asyncio.get_running_loop().is_running()
    assert word == "word"


def test_an_async_test_that_raises_fails() -> None:
    async def test() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        blocking(test)()


@given(number=st.integers())
async def test_an_async_test_takes_examples(number: int) -> None:
    await asyncio.sleep(0)
    assert isinstance(number, int)
