"""Continuity: saving what lives beside a task, and bringing it back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure._runtime import unit_types
from tests.continuity.restore_kit import MadeType
from tests.support.processes import Nursery, nursery
from tests.torture.powerloss import fast_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of this test's own, in memory: a killed process loses nothing the kernel has."""
    with fast_folder() as path:
        yield path


@pytest.fixture
def children() -> Iterator[Nursery]:
    with nursery() as warm:
        yield warm


@pytest.fixture
def made_type(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    unit_types.register(MadeType())
    yield
    unit_types._types.pop("made")
    MadeType.fails = False
